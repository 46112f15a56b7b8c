// The places in the source at which atomic operations and fences stand, and which of them is
// weakened in this exploration.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "checker/graph.h"

namespace lintel::model {

enum class Operation : uint8_t { load, store, exchange, failure, fence, light, heavy };

// An order that a site has and a weaker one.
struct Weakening {
  size_t site;
  Order to;
  bool dropped;  // fences
};

struct Place {
  std::string file;  // without src/ or gasnet/
  int line = 0;
  std::string function;
  auto operator<=>(const Place&) const = default;
};

class Sites {
 public:
  // Notes the site. Returns its order, or the weaker one that is tried.
  [[nodiscard]] Order order_of(uintptr_t address, Operation operation, Order order);
  [[nodiscard]] bool is_dropped(uintptr_t address, Operation operation);

  // Gives lines to the addresses that were noted; several may have the same.
  void name_all(uintptr_t another = 0);
  // Every weaker order of every site in these files.
  [[nodiscard]] std::vector<Weakening> weakenings(const std::vector<const char*>& files) const;
  void weaken(const Weakening* weakening) noexcept { tried_ = weakening; }
  [[nodiscard]] std::string text(const Weakening& weakening) const;
  [[nodiscard]] size_t count() const noexcept { return sites_.size(); }
  [[nodiscard]] std::string line_of(uintptr_t address) const;
  void forget() noexcept;

 private:
  struct Site {
    Place place;
    Operation operation;
    Order order;
    unsigned number;  // of several that are alike in one function
    auto operator<=>(const Site&) const = default;
  };
  struct Key {
    uintptr_t address;
    Operation operation;
    auto operator<=>(const Key&) const = default;
  };
  std::map<Key, Order> seen_;
  std::map<Key, size_t> site_of_;
  std::map<uintptr_t, Place> lines_;
  std::vector<Site> sites_;
  const Weakening* tried_ = nullptr;
};

[[nodiscard]] const char* name_of(Order order) noexcept;
[[nodiscard]] const char* name_of(Operation operation) noexcept;

}  // namespace lintel::model
