// The secret of a user on a node: processes of the user share it, and the last one removes it.
#include "shm/node_secret.h"

#include <fcntl.h>
#include <grp.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <array>
#include <atomic>
#include <filesystem>
#include <thread>

#include <gtest/gtest.h>

#include "shm/private_directory.h"
#include "shm/segment_directory.h"
#include "shm_test_support.h"
#include "support/system_calls.h"
#include "util/new_descriptor.h"

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

// Other users may take any names in /dev/shm. All processes of this user still meet.

// As files of other users: the library refuses what it can neither enter nor keep private.
class TakenNames {
 public:
  explicit TakenNames(unsigned count) {
    const std::string name = segment_root() + "/lintel." + std::to_string(geteuid());
    for (unsigned i = 0; i < count; ++i) {
      paths_.push_back(i == 0 ? name : name + "." + std::to_string(i));
      const char* const path = paths_.back().c_str();
      if (i % 3 == 0) {
        EXPECT_TRUE(mkdir(path, 0777) == 0 && chmod(path, 0777) == 0);
      } else if (i % 3 == 1) {
        EXPECT_EQ(symlink("/tmp", path), 0);
      } else {
        close(open(path, O_CREAT | O_CLOEXEC, 0600));
      }
    }
  }
  ~TakenNames() {
    for (unsigned i = 0; i < paths_.size(); ++i) give_up(i);
  }
  void give_up(unsigned number) const {
    const std::string& path = paths_[number];
    if (unlink(path.c_str()) != 0) rmdir(path.c_str());
  }

 private:
  const test::EmptySegmentRoot root_;
  std::vector<std::string> paths_;
};

TEST(PrivateDirectory, IsFoundHoweverManyNamesAreTaken) {
  const TakenNames taken(200);
  const auto transport = open_transport(test_settings(5));
  ASSERT_NE(transport, nullptr);
  ChildProcess child([&] {
    const auto other = open_transport();
    std::string reason;
    if (other == nullptr) return 1;
    return other->connect(transport->id(), &reason) != nullptr ? 0 : 2;
  });
  EXPECT_EQ(child.wait(), 0);
}

// Without a key the secret admits processes of this user on networks.
TEST(PrivateDirectory, KeepsTheSecretHoweverManyNamesAreTaken) {
  const TakenNames taken(40);
  std::string reason;
  const auto secret = share_node_secret(reason);
  ASSERT_NE(secret, nullptr);
  EXPECT_EQ(reason, "");
  ChildProcess child([&] {
    std::string none;
    const auto of_child = share_node_secret(none);
    return of_child != nullptr && *of_child == *secret ? 0 : 1;
  });
  EXPECT_EQ(child.wait(), 0);
}

// Of those who come while a name becomes free, too.
TEST(PrivateDirectory, IsTheSameForAllWhoStartAtOnce) {
  constexpr int starters = 6;
  for (int round = 0; round < 5; ++round) {
    const TakenNames taken(20);
    struct Board {
      std::atomic<int> go, opened, finish;
      std::array<std::array<char, 64>, starters> names;
    };
    Shared<Board> board;
    std::vector<ChildProcess> children;
    for (int i = 0; i < starters; ++i) {
      children.emplace_back([&, i] {
        if (!wait_until([&] { return board->go.load() != 0; })) return 1;
        const auto transport = open_transport();
        if (transport == nullptr) return 2;
        const std::string path = transport->segment().path();
        path.substr(0, path.rfind('/')).copy(board->names[i].data(), 63);
        ++board->opened;
        return wait_until([&] { return board->finish.load() != 0; }) ? 0 : 3;
      });
    }
    board->go.store(1);
    ASSERT_TRUE(wait_until([&] { return board->opened.load() == starters; }));
    taken.give_up(0);
    const auto later = open_transport();
    ASSERT_NE(later, nullptr);
    const std::string expected(board->names[0].data());
    for (const auto& name : board->names) EXPECT_EQ(name.data(), expected);
    EXPECT_TRUE(later->segment().path().starts_with(expected + "/"));
    board->finish.store(1);
    for (ChildProcess& child : children) EXPECT_EQ(child.wait(), 0);
  }
}

// A process that starts does not take another name for that of one that just finishes: a third one
// that starts might take the first name again.
TEST(PrivateDirectory, KeepsItsNameWhileOthersRemoveIt) {
  const test::EmptySegmentRoot root;
  const std::string first = segment_root() + "/lintel." + std::to_string(geteuid());
  std::atomic<int> starters{2};
  std::atomic<int> others{0};
  const auto start = [&] {
    for (int i = 0; i < 20'000 && others.load() == 0; ++i) {
      const auto found = open_private_directory(segment_root(), true);
      if (!found || found->path != first) ++others;
    }
    --starters;
  };
  std::thread one(start);
  std::thread another(start);
  while (starters.load() != 0) rmdir(first.c_str());
  one.join();
  another.join();
  EXPECT_EQ(others.load(), 0);
}

// Files and directories of the library under any umask. Root may open what nobody else may, so
// these tests become another user where they can.

using test::ChildProcess;

constexpr uid_t nobody = 65534;
constexpr mode_t masks_all = 0777;

mode_t mode_of(const std::string& path) {
  struct stat status;
  return lstat(path.c_str(), &status) == 0 ? status.st_mode & 07777 : 0;
}

std::string own_directory() { return segment_root() + "/lintel." + std::to_string(geteuid()); }

// Runs the body in a child without the rights of root, with a directory for segments of its own.
// Its result: 0, or the number of the step that failed.
template <typename Body>
int run_without_rights(Body&& body) {
  char root[] = "/dev/shm/lintel-test-XXXXXX";
  if (mkdtemp(root) == nullptr) return -1;
  const bool is_root = geteuid() == 0;
  if (is_root && chown(root, nobody, nobody) != 0) return -1;
  ChildProcess child([&]() -> int {
    if (is_root && (setgroups(0, nullptr) != 0 || setgid(nobody) != 0 || setuid(nobody) != 0))
      return 100;
    set_segment_root(root);
    return body();
  });
  const int result = child.wait();
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(root, ignored))
    chmod(entry.path().c_str(), 0700);
  std::filesystem::remove_all(root, ignored);
  return result;
}

TEST(MadeUnderUmask, SegmentsAndSecretsAreOfTheOwnerAlone) {
  const ShmSettings settings = test::test_settings();
  EXPECT_EQ(run_without_rights([&] {
              umask(masks_all);
              std::string reason;
              const auto secret = share_node_secret(reason);
              if (!reason.empty()) return 1;
              const auto one = test::open_transport(settings);
              const auto other = test::open_transport(settings);
              if (one == nullptr || other == nullptr) return 2;
              if (mode_of(own_directory()) != 0700) return 3;
              if (mode_of(one->segment().path()) != 0600) return 4;
              for (const auto& file : std::filesystem::directory_iterator(own_directory()))
                if (mode_of(file.path()) != 0600) return 5;
              return one->connect(other->id(), &reason) != nullptr ? 0 : 6;
            }),
            0);
}

TEST(MadeUnderUmask, WhatWasLeftWithoutRightsIsMended) {
  const ShmSettings settings = test::test_settings();
  EXPECT_EQ(
      run_without_rights([&] {
        const std::string directory = own_directory();
        const std::string segment = directory + "/" + SegmentName{{test::test_nid, 7}, 16}.text();
        const std::string secret = directory + "/secret.00112233445566778899aabbccddeeff";
        if (mkdir(directory.c_str(), 0700) != 0) return 1;
        for (const std::string& name : {segment, secret})
          close(open(name.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0));
        if (chmod(directory.c_str(), 0) != 0) return 2;
        std::string reason;
        const auto value = share_node_secret(reason);
        if (!reason.empty() || mode_of(secret) != 0600) return 3;
        const auto transport = test::open_transport(settings);
        if (transport == nullptr || mode_of(directory) != 0700) return 4;
        return access(segment.c_str(), F_OK) != 0 ? 0 : 5;  // its owner does not run
      }),
      0);
}

TEST(MadeUnderUmask, AFileHasTheRightsOfItsOwnerAndNoOthers) {
  EXPECT_EQ(run_without_rights([] {
              umask(masks_all);
              const std::string path = segment_root() + "/file";
              if (!open_file(path.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0666).is_open()) return 1;
              if (mode_of(path) != 0600) return 2;
              umask(022);
              return open_file(path.c_str(), O_RDWR | O_CREAT, 0666).is_open() ? 0 : 3;
            }),
            0);
}

TEST(MadeUnderUmask, WhatOthersMayUseIsNotMended) {
  EXPECT_EQ(run_without_rights([] {
              const std::string path = segment_root() + "/file";
              close(open(path.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
              if (chmod(path.c_str(), 0040) != 0) return 1;
              return !mend_private(path.c_str(), 0700) && mode_of(path) == 0040 ? 0 : 2;
            }),
            0);
}

}  // namespace
}  // namespace lintel::test
