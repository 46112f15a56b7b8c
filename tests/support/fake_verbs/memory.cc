// The stand-in for libibverbs: registered memory and memory windows.
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <memory>

#include "support/fake_verbs/objects.h"

#undef ibv_reg_mr

namespace lintel::fake_verbs {

namespace {

// In the key of a window, the user chooses the last byte.
constexpr uint32_t key_of_user = 0xff;

bool within(uint64_t address, uint64_t length, uint64_t begin, uint64_t available) {
  return address >= begin && length <= available && address - begin <= available - length;
}

bool is_accessible(void* address) {
  char byte;
  const iovec here{&byte, 1};
  const iovec there{address, 1};
  return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == 1;
}

Window* window_of(uint32_t key) {
  World& all = world();
  const auto found = all.windows.find(key & ~key_of_user);
  return found == all.windows.end() || found->second->key != key ? nullptr : found->second;
}

}  // namespace

bool local_access(const ibv_pd* domain, const ibv_sge& piece, bool write) {
  if (piece.length == 0) return true;
  World& all = world();
  const auto found = all.regions.find(piece.lkey);
  if (found == all.regions.end()) return false;
  const Region& region = *found->second;
  return region.pd == domain && (!write || (region.access & IBV_ACCESS_LOCAL_WRITE) != 0) &&
         within(piece.addr, piece.length, reinterpret_cast<uint64_t>(region.addr), region.length);
}

bool remote_access(const QueuePair& target, uint32_t key, uint64_t address, uint64_t length,
                   bool write) {
  const int wanted = write ? IBV_ACCESS_REMOTE_WRITE : IBV_ACCESS_REMOTE_READ;
  if ((static_cast<int>(target.attributes.qp_access_flags) & wanted) == 0) return false;
  if (length == 0) return true;
  World& all = world();
  if (const Window* const window = window_of(key)) {
    return window->region != nullptr && window->queue_pair == target.qp_num &&
           (static_cast<int>(window->access) & wanted) != 0 &&
           within(address, length, window->begin, window->length);
  }
  const auto found = all.regions.find(key);
  if (found == all.regions.end()) return false;
  const Region& region = *found->second;
  return region.pd == target.pd && (region.access & wanted) != 0 &&
         within(address, length, reinterpret_cast<uint64_t>(region.addr), region.length);
}

std::byte* memory_at(uint32_t key, uint64_t address) {
  World& all = world();
  const auto found = all.regions.find(key);
  auto* const plain = reinterpret_cast<std::byte*>(address);
  return found == all.regions.end() || found->second->inside == nullptr
             ? plain
             : found->second->inside + (plain - static_cast<std::byte*>(found->second->addr));
}

bool bind(QueuePair& pair, const Send& send) {
  const ibv_send_wr& request = send.request;
  const ibv_mw_bind_info& info = request.bind_mw.bind_info;
  auto& window = static_cast<Window&>(*request.bind_mw.mw);
  auto& region = static_cast<Region&>(*info.mr);
  World& all = world();
  const auto known = all.windows.find(request.bind_mw.rkey & ~key_of_user);
  if (known == all.windows.end() || known->second != &window) return false;
  if (send.window_key != window.key) return false;
  if (window.region != nullptr || window.pd != pair.pd || region.pd != pair.pd) return false;
  if (all.regions.count(region.lkey) == 0 || (region.access & IBV_ACCESS_MW_BIND) == 0)
    return false;
  if ((info.mw_access_flags & IBV_ACCESS_REMOTE_WRITE) != 0 &&
      (region.access & IBV_ACCESS_LOCAL_WRITE) == 0)
    return false;
  if (info.length == 0 ||
      !within(info.addr, info.length, reinterpret_cast<uint64_t>(region.addr), region.length))
    return false;
  window.region = &region;
  window.begin = info.addr;
  window.length = info.length;
  window.access = info.mw_access_flags;
  window.queue_pair = pair.qp_num;
  window.key = request.bind_mw.rkey;
  ++region.windows;
  return true;
}

bool invalidate(uint32_t key, const QueuePair* target) {
  Window* const window = window_of(key);
  if (window == nullptr) return false;
  if (window->region == nullptr) {
    violation("a memory window is invalidated twice");
    return false;
  }
  if (target != nullptr && window->queue_pair != target->qp_num) return false;
  --window->region->windows;
  window->region = nullptr;
  return true;
}

ibv_mw* alloc_mw(ibv_pd* domain, ibv_mw_type type) {
  World& all = world();
  const std::lock_guard guard(all.lock);
  int error = call_fault("ibv_alloc_mw");
  if (error == 0 && (!all.settings.windows || type != IBV_MW_TYPE_2)) error = EOPNOTSUPP;
  if (error != 0) {
    errno = error;
    return nullptr;
  }
  auto* const window = new Window{};
  window->context = domain->context;
  window->pd = domain;
  window->type = type;
  window->rkey = window->key = all.next_key += key_of_user + 1;
  all.windows[window->rkey & ~key_of_user] = window;
  ++static_cast<Domain*>(domain)->users;
  ++all.in_use.windows;
  return window;
}

int dealloc_mw(ibv_mw* base) {
  World& all = world();
  const std::lock_guard guard(all.lock);
  if (const int error = call_fault("ibv_dealloc_mw"); error != 0) return error;
  auto* const window = static_cast<Window*>(base);
  if (window->region != nullptr) --window->region->windows;
  all.windows.erase(window->rkey & ~key_of_user);
  --static_cast<Domain*>(window->pd)->users;
  --all.in_use.windows;
  delete window;
  return 0;
}

}  // namespace lintel::fake_verbs

using namespace lintel::fake_verbs;

extern "C" {

ibv_mr* ibv_reg_mr_iova2(ibv_pd* domain, void* address, size_t length, uint64_t iova,
                         unsigned access) {
  World& all = world();
  const std::lock_guard guard(all.lock);
  int error = call_fault("ibv_reg_mr");
  // Remote write access requires local write access.
  const bool remote_write = (access & IBV_ACCESS_REMOTE_WRITE) != 0;
  if (error == 0 && remote_write && (access & IBV_ACCESS_LOCAL_WRITE) == 0) error = EINVAL;
  if (error == 0 && iova != reinterpret_cast<uint64_t>(address)) error = EOPNOTSUPP;
  if (error == 0 && !all.settings.peer_memory && !is_accessible(address)) error = EFAULT;
  if (error == 0 && all.regions.size() >= static_cast<size_t>(all.settings.max_mr)) error = ENOMEM;
  const bool locks = (access & IBV_ACCESS_ON_DEMAND) == 0;
  if (error == 0 && !locks && !all.settings.on_demand) error = EOPNOTSUPP;
  if (error == 0 && locks && all.locked_bytes + length > all.most_locked_bytes) error = ENOMEM;
  if (error != 0) {
    errno = error;
    return nullptr;
  }
  auto* const region = new Region{};
  region->context = domain->context;
  region->pd = domain;
  region->addr = address;
  region->length = length;
  region->lkey = region->rkey = all.next_key += key_of_user + 1;
  region->access = static_cast<int>(access);
  all.regions[region->lkey] = region;
  all.registered_bytes += length;
  if (locks) all.locked_bytes += length;
  ++static_cast<Domain*>(domain)->users;
  ++all.in_use.regions;
  return region;
}

ibv_mr* ibv_reg_mr(ibv_pd* domain, void* address, size_t length, int access) {
  return ibv_reg_mr_iova2(domain, address, length, reinterpret_cast<uint64_t>(address),
                          static_cast<unsigned>(access));
}

int ibv_dereg_mr(ibv_mr* base) {
  World& all = world();
  const std::lock_guard guard(all.lock);
  if (const int error = call_fault("ibv_dereg_mr"); error != 0) return error;
  auto* const region = static_cast<Region*>(base);
  if (region->windows != 0) {
    violation("ibv_dereg_mr of memory that windows are bound to");
    return EBUSY;
  }
  all.regions.erase(region->lkey);
  all.registered_bytes -= region->length;
  if ((region->access & IBV_ACCESS_ON_DEMAND) == 0) all.locked_bytes -= region->length;
  --static_cast<Domain*>(region->pd)->users;
  --all.in_use.regions;
  if (region->mapping != nullptr) munmap(region->mapping, region->mapped);
  delete region;
  return 0;
}

ibv_mr* ibv_reg_dmabuf_mr(ibv_pd* domain, uint64_t offset, size_t length, uint64_t iova,
                          int descriptor, int access) {
  constexpr uint64_t page = 4096;
  constexpr int permitted = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                            IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
                            IBV_ACCESS_RELAXED_ORDERING;
  World& all = world();
  const std::lock_guard guard(all.lock);
  all.last_dmabuf = descriptor;
  int error = call_fault("ibv_reg_dmabuf_mr");
  if (error == 0 && !all.settings.dmabuf) error = EOPNOTSUPP;
  if (error == 0 && ((access & ~permitted) != 0 || offset % page != iova % page)) error = EINVAL;
  struct stat state {};
  if (error == 0 &&
      (fstat(descriptor, &state) != 0 || offset + length > static_cast<uint64_t>(state.st_size)))
    error = EINVAL;
  const uint64_t begin = offset / page * page;
  auto region = std::make_unique<Region>();
  if (error == 0) {
    region->mapped = offset + length - begin;
    region->mapping = mmap(nullptr, region->mapped, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor,
                           static_cast<off_t>(begin));
    if (region->mapping == MAP_FAILED) error = ENOMEM;
  }
  if (error != 0) {
    errno = error;
    return nullptr;
  }
  region->inside = static_cast<std::byte*>(region->mapping) + (offset - begin);
  region->context = domain->context;
  region->pd = domain;
  region->addr = reinterpret_cast<void*>(iova);
  region->length = length;
  region->lkey = region->rkey = all.next_key += key_of_user + 1;
  region->access = access | IBV_ACCESS_ON_DEMAND;  // nothing is locked
  all.regions[region->lkey] = region.get();
  all.registered_bytes += length;
  ++static_cast<Domain*>(domain)->users;
  ++all.in_use.regions;
  return region.release();
}

}  // extern "C"
