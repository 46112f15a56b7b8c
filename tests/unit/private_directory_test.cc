// Other users may take any names in /dev/shm. All processes of this user still meet.
#include <fcntl.h>
#include <sys/stat.h>

#include <array>
#include <atomic>

#include <gtest/gtest.h>

#include "shm/node_secret.h"
#include "shm/segment_directory.h"
#include "shm_test_support.h"

namespace lintel::test {
namespace {

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

}  // namespace
}  // namespace lintel::test
