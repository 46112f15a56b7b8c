// The secret of a user on a node: processes of the user share it, and the last one removes it.
#include "shm/node_secret.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include <atomic>
#include <filesystem>

#include <gtest/gtest.h>

#include "shm_test_support.h"
#include "support/system_calls.h"

namespace lintel::test {
namespace {

std::vector<std::string> files_of_secrets() {
  std::vector<std::string> found;
  if (const auto directory = SegmentDirectory::open(false)) {
    directory->for_each_name([&](const char* name) {
      if (std::string_view(name).substr(0, 7) == "secret.")
        found.push_back(directory->path() + "/" + name);
      return true;
    });
  }
  return found;
}

std::string current_secret() {
  std::string reason;
  const auto secret = share_node_secret(reason);
  EXPECT_EQ(reason, "");
  return secret == nullptr ? "" : *secret;
}

// The secret that another process of this user reads.
std::string secret_of_a_child() {
  Shared<std::array<char, node_secret_bytes>> found;
  ChildProcess child([&]() -> int {
    const std::string secret = current_secret();
    std::copy_n(secret.data(), node_secret_bytes, found->data());
    return 0;
  });
  EXPECT_EQ(child.wait(), 0);
  return {found->data(), node_secret_bytes};
}

class NodeSecretTest : public testing::Test {
  const test::EmptySegmentRoot root_;
};

TEST_F(NodeSecretTest, LiesInAPrivateFileWhileItIsUsed) {
  std::string reason;
  auto secret = share_node_secret(reason);
  ASSERT_NE(secret, nullptr);
  EXPECT_EQ(reason, "");
  EXPECT_EQ(secret->size(), node_secret_bytes);
  ASSERT_EQ(files_of_secrets().size(), 1u);
  struct stat status;
  ASSERT_EQ(stat(files_of_secrets().front().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600u);
  ASSERT_EQ(stat((segment_root() + "/lintel." + std::to_string(geteuid())).c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0700u);
  const std::string before = *secret;
  secret.reset();
  EXPECT_TRUE(files_of_secrets().empty());
  EXPECT_NE(current_secret(), before);
}

// As in some containers.
TEST_F(NodeSecretTest, IsTheSameWhereFlockAndMadviseAreDenied) {
  std::string reason;
  const auto secret = share_node_secret(reason);
  for (unsigned i = 0; i < 2; ++i) {
    Shared<std::array<char, node_secret_bytes>> found;
    ChildProcess child([&]() -> int {
      if (!test::answer_calls({{SYS_flock, EPERM}, {SYS_madvise, EPERM}})) return 77;
      std::string why;
      const auto same = share_node_secret(why);
      if (!why.empty()) return 1;
      std::copy_n(same->data(), node_secret_bytes, found->data());
      return 0;
    });
    const int code = child.wait();
    if (code == 77) GTEST_SKIP() << "the kernel has no filters of calls";
    ASSERT_EQ(code, 0);
    EXPECT_EQ(std::string(found->data(), node_secret_bytes), *secret);
  }
  EXPECT_EQ(files_of_secrets().size(), 1u);
}

TEST_F(NodeSecretTest, OneOfThoseMadeAtOnceWithoutALockCounts) {
  constexpr unsigned starters = 8;
  Shared<std::array<std::array<char, node_secret_bytes>, starters>> found;
  Shared<std::atomic<unsigned>> there;
  Shared<std::atomic<bool>> go;
  std::vector<std::unique_ptr<ChildProcess>> children;
  for (unsigned i = 0; i < starters; ++i)
    children.push_back(std::make_unique<ChildProcess>([&, i]() -> int {
      if (!test::answer_calls({{SYS_flock, ENOSYS}})) return 77;
      std::string why;
      const auto secret = share_node_secret(why);
      std::copy_n(secret->data(), node_secret_bytes, found->at(i).data());
      ++*there;
      // All keep it, so that none is the last one.
      return wait_until([&] { return go->load(); }) && why.empty() ? 0 : 1;
    }));
  const bool all = wait_until([&] { return there->load() == starters; });
  go->store(true);
  for (const auto& child : children)
    if (const int code = child->wait(); code == 77)
      GTEST_SKIP() << "the kernel has no filters of calls";
    else
      EXPECT_EQ(code, 0);
  ASSERT_TRUE(all);
  for (unsigned i = 1; i < starters; ++i) EXPECT_EQ(found->at(i), found->at(0)) << i;
}

TEST_F(NodeSecretTest, IsTheSameForAllProcesses) {
  std::string reason;
  const auto secret = share_node_secret(reason);
  EXPECT_EQ(current_secret(), *secret);
  EXPECT_EQ(secret_of_a_child(), *secret);
  EXPECT_EQ(files_of_secrets().size(), 1u) << "the child was not the last one";
}

TEST_F(NodeSecretTest, OfAKilledProcessGoesWithTheNextOne) {
  Shared<std::atomic<int>> ready;
  ChildProcess child([&]() -> int {
    std::string reason;
    const auto secret = share_node_secret(reason);
    ready->store(1);
    for (;;) pause();
  });
  ASSERT_TRUE(wait_until([&] { return ready->load() != 0; }));
  child.kill_and_wait();
  EXPECT_EQ(files_of_secrets().size(), 1u);
  EXPECT_NE(current_secret(), "");
  EXPECT_TRUE(files_of_secrets().empty());
}

TEST_F(NodeSecretTest, IsLeftByAProcessThatCannotOpenFiles) {
  std::string reason;
  const auto secret = share_node_secret(reason);
  ChildProcess child([&]() -> int {
    std::string none;
    auto of_child = share_node_secret(none);
    // Enough descriptors for the directory, but not for the file.
    const int next = dup(0);
    close(next);
    const rlimit limit{static_cast<rlim_t>(next) + 1, static_cast<rlim_t>(next) + 1};
    setrlimit(RLIMIT_NOFILE, &limit);
    of_child.reset();
    return 0;
  });
  EXPECT_EQ(child.wait(), 0);
  EXPECT_EQ(files_of_secrets().size(), 1u);
}

TEST_F(NodeSecretTest, WithoutADirectoryNobodyElseKnowsIt) {
  const std::string root = segment_root();
  set_segment_root(root + "/missing");
  std::string reason;
  const auto secret = share_node_secret(reason);
  ASSERT_NE(secret, nullptr);
  EXPECT_EQ(secret->size(), node_secret_bytes);
  EXPECT_NE(reason.find("No such file or directory"), std::string::npos) << reason;
  set_segment_root(root);
}

}  // namespace
}  // namespace lintel::test
