// Files and directories of the library under any umask. Root may open what nobody else may, so
// these tests become another user where they can.
#include <fcntl.h>
#include <grp.h>
#include <sys/stat.h>

#include <gtest/gtest.h>

#include "shm/node_secret.h"
#include "shm_test_support.h"
#include "util/new_descriptor.h"

namespace lintel {
namespace {

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
}  // namespace lintel
