#include "address/address_vector.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "base/provider.h"
#include "base/unsupported.h"
#include "domain/domain.h"

namespace lintel::ofi {
namespace {

constexpr int most_context_bits = 8;

AddressVector& of(fid_av* vector) { return *static_cast<AddressVector*>(vector); }
AddressVector& of(Object* object) { return of(reinterpret_cast<fid_av*>(object)); }

int av_insert(fid_av* vector, const void* addresses, size_t count, fi_addr_t* results,
              uint64_t flags, void* context) {
  return of(vector).insert(addresses, count, results, flags, context);
}

int av_insert_service(fid_av* vector, const char* node, const char* service, fi_addr_t* result,
                      uint64_t flags, void* context) {
  return of(vector).insert_text(node, service, result, flags, context);
}

int av_remove(fid_av* vector, fi_addr_t* addresses, size_t count, uint64_t flags) {
  return flags == 0 ? of(vector).remove(addresses, count) : -FI_EINVAL;
}

int av_lookup(fid_av* vector, fi_addr_t address, void* name, size_t* size) {
  return of(vector).look_up(address, name, size);
}

const char* av_straddr(fid_av* vector, const void* name, char* buffer, size_t* size) {
  return of(vector).describe(name, buffer, size);
}

fi_ops vector_object_ops =
    object_ops([](Object* object) { return of(object).close(); },
               [](Object* object, Object* other, uint64_t) { return of(object).bind(other); });
fi_ops_av vector_ops = {.size = sizeof(fi_ops_av),
                        .insert = av_insert,
                        .insertsvc = av_insert_service,
                        .insertsym = unsupported(&fi_ops_av::insertsym),
                        .remove = av_remove,
                        .lookup = av_lookup,
                        .straddr = av_straddr,
                        .av_set = unsupported(&fi_ops_av::av_set)};

}  // namespace

AddressVector::AddressVector(Domain& domain, const fi_av_attr& attr, void* context) noexcept
    : fid_av{{FI_CLASS_AV, context, &vector_object_ops}, &vector_ops},
      domain_(domain),
      is_table_(attr.type == FI_AV_TABLE || attr.rx_ctx_bits != 0),
      context_bits_(attr.rx_ctx_bits),
      as_text_(domain.names_as_text()),
      reports_((attr.flags & FI_EVENT) != 0) {
  domain_.add_user();
}

int AddressVector::open(fid_domain* domain, fi_av_attr* attr, fid_av** result,
                        void* context) noexcept {
  Domain& owner = Domain::of(domain);
  if (attr->name != nullptr || (attr->flags & FI_READ) != 0) {
    FI_INFO(provider(), FI_LOG_AV, "address vectors are not shared between processes: %s\n",
            attr->name != nullptr ? attr->name : "");
    return -FI_ENOSYS;
  }
  if (attr->rx_ctx_bits < 0 || attr->rx_ctx_bits > most_context_bits) return -FI_EINVAL;
  if (attr->type == FI_AV_UNSPEC) attr->type = owner.vector_type();
  if (attr->type != FI_AV_MAP && attr->type != FI_AV_TABLE) return -FI_EINVAL;
  auto* const vector = new (std::nothrow) AddressVector(owner, *attr, context);
  if (vector == nullptr) return -FI_ENOMEM;
  *result = vector;
  return 0;
}

fi_addr_t AddressVector::resolve_context(fi_addr_t address) const noexcept {
  const int position_bits = 64 - context_bits_;
  const fi_addr_t position = address & ((fi_addr_t{1} << position_bits) - 1);
  if (position >= table_.size() || table_[position] == FI_ADDR_NOTAVAIL) return FI_ADDR_NOTAVAIL;
  const Peer first(table_[position]);
  const uint64_t index = first.index + (address >> position_bits);
  return index < most_endpoints ? encode(first.process, static_cast<uint32_t>(index))
                                : FI_ADDR_NOTAVAIL;
}

int AddressVector::close() noexcept {
  if (users_ != 0) {
    FI_WARN(provider(), FI_LOG_AV, "%zu endpoints use the address vector; close them first.\n",
            users_);
    return -FI_EBUSY;
  }
  if (events_ != nullptr) events_->remove_user();
  domain_.remove_user();
  delete this;
  return 0;
}

int AddressVector::bind(Object* queue) noexcept {
  if (queue->fclass != FI_CLASS_EQ) return -FI_EINVAL;
  if (events_ != nullptr) return -FI_EBUSY;
  events_ = &EventQueue::of(queue);
  events_->add_user();
  return 0;
}

bool AddressVector::read(const void* addresses, size_t position, Address& address) const noexcept {
  if (as_text_) return parse(static_cast<const char* const*>(addresses)[position], address);
  memcpy(&address, static_cast<const char*>(addresses) + position * sizeof address, sizeof address);
  return address.is_valid();
}

// The lowest place that is not in use (man fi_av).
size_t AddressVector::take_place(fi_addr_t encoded) {
  const auto from = table_.begin() + static_cast<ptrdiff_t>(first_free_);
  const auto place = std::find(from, table_.end(), FI_ADDR_NOTAVAIL);
  first_free_ = static_cast<size_t>(place - table_.begin()) + 1;
  if (place != table_.end()) {
    *place = encoded;
  } else {
    table_.push_back(encoded);
  }
  return first_free_ - 1;
}

fi_addr_t AddressVector::add(fi_addr_t encoded, const fi_addr_t* reported) {
  const fi_addr_t result = is_table_ ? take_place(encoded) : encoded;
  const fi_addr_t sender = sender_name(encoded);
  if (reported != nullptr) {
    reported_[sender] = *reported;
  } else if (is_table_ || sender != encoded) {
    reported_.try_emplace(sender, result);
  }
  return result;
}

void AddressVector::report_error(void* context, size_t position) noexcept {
  fi_eq_err_entry entry{};
  entry.fid = &fid;
  entry.context = context;
  entry.data = position;
  entry.err = FI_EINVAL;
  events_->post_error(entry);
}

int AddressVector::insert(const void* addresses, size_t count, fi_addr_t* results, uint64_t flags,
                          void* context) noexcept {
  const Guard guard(domain_.lock());
  if (reports_ && events_ == nullptr) return -FI_ENOEQ;
  const bool wants_errors = (flags & FI_SYNC_ERR) != 0;
  if (wants_errors && (context == nullptr || reports_)) return -FI_EINVAL;
  int* const errors = wants_errors ? static_cast<int*>(context) : nullptr;
  const bool has_identifiers = (flags & FI_AV_USER_ID) != 0;
  if (has_identifiers && results == nullptr) return -FI_EINVAL;
  size_t inserted = 0;
  for (size_t i = 0; i < count; ++i) {
    Address address;
    const bool good = read(addresses, i, address);
    const fi_addr_t* const identifier = has_identifiers ? &results[i] : nullptr;
    const fi_addr_t result = good ? add(encode(address), identifier) : FI_ADDR_NOTAVAIL;
    if (!good)
      FI_WARN(provider(), FI_LOG_AV, "address %zu of %zu is none that fi_getname gave.\n", i,
              count);
    if (!good && reports_) report_error(context, i);
    if (results != nullptr) results[i] = result;
    if (errors != nullptr) errors[i] = good ? 0 : FI_EINVAL;
    inserted += good ? 1 : 0;
  }
  if (!reports_) return static_cast<int>(inserted);
  events_->post(FI_AV_COMPLETE, {.fid = &fid, .context = context, .data = inserted});
  return 0;
}

int AddressVector::insert_text(const char* node, const char* service, fi_addr_t* result,
                               uint64_t flags, void* context) noexcept {
  Address address;
  if (node == nullptr || service != nullptr || !parse(node, address)) {
    FI_WARN(provider(), FI_LOG_AV,
            "%s %s: pass the text of an address, fi_lintel://..., as node.\n",
            node != nullptr ? node : "(null)", service != nullptr ? service : "");
    return -FI_EINVAL;
  }
  if (as_text_) return insert(&node, 1, result, flags, context);
  return insert(&address, 1, result, flags, context);
}

int AddressVector::remove(const fi_addr_t* addresses, size_t count) noexcept {
  const Guard guard(domain_.lock());
  for (size_t i = 0; i < count; ++i) {
    const fi_addr_t encoded = resolve(addresses[i]);
    if (encoded == FI_ADDR_NOTAVAIL) return -FI_EINVAL;
    if (is_table_) {
      if (addresses[i] >= table_.size()) return -FI_EINVAL;  // that of a context
      table_[addresses[i]] = FI_ADDR_NOTAVAIL;
      first_free_ = std::min<size_t>(first_free_, addresses[i]);
    }
    reported_.erase(sender_name(encoded));
  }
  return 0;
}

int AddressVector::look_up(fi_addr_t address, void* name, size_t* size) const noexcept {
  const fi_addr_t encoded = resolve(address);
  if (encoded == FI_ADDR_NOTAVAIL) return -FI_EINVAL;
  (void)copy_name(decode(encoded), as_text_, name, size);  // a part is no error (man fi_av)
  return 0;
}

const char* AddressVector::describe(const void* name, char* buffer, size_t* size) const noexcept {
  Address address;
  if (!as_text_) memcpy(&address, name, sizeof address);
  const AddressText written(address);
  const char* const text = as_text_ ? static_cast<const char*>(name) : written.c_str();
  if (buffer != nullptr) snprintf(buffer, *size, "%s", text);
  *size = strlen(text) + 1;
  return buffer;
}

fi_addr_t AddressVector::find(fi_addr_t encoded) const noexcept {
  if (!is_table_ && reported_.empty()) return encoded;
  const auto found = reported_.find(encoded);
  if (found != reported_.end()) return found->second;
  return is_table_ ? FI_ADDR_NOTAVAIL : encoded;
}

}  // namespace lintel::ofi
