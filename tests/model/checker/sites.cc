// Lines come from addr2line: a hook sees the address of the instruction behind its call.
#include "checker/sites.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <set>

extern "C" const char __executable_start;

namespace lintel::model {

namespace {
std::string short_name(std::string text) {
  if (const size_t at = text.find("(anonymous namespace)::"); at != std::string::npos)
    text.erase(at, 23);
  for (size_t open; (open = text.rfind('<')) != std::string::npos;) {
    const size_t close = text.find('>', open);
    text.erase(open, close == std::string::npos ? close : close + 1 - open);
  }
  text.resize(std::min(text.find('('), text.size()));
  text = text.substr(text.rfind(' ') + 1);  // without the type of a template's result
  for (const std::string prefix : {"lintel::", "model::"})
    if (text.starts_with(prefix)) text = text.substr(prefix.size());
  return text;
}
Place place_of(std::string text, const std::string& function) {
  for (const std::string folder : {"/src/", "/gasnet/", "/tests/model/"})
    if (const size_t at = text.rfind(folder); at != std::string::npos)
      text = text.substr(at + folder.size());
  const size_t colon = std::min(text.find(':'), text.size());
  return {text.substr(0, colon), std::atoi(text.c_str() + std::min(colon + 1, text.size())),
          function};
}
std::string text_of(const Place& place) {
  return place.file + ":" + std::to_string(place.line) + " " + place.function;
}
}  // namespace

const char* name_of(Order order) noexcept {
  constexpr const char* names[] = {"relaxed", "acquire", "release", "acq_rel",
                                   "seq_cst", "light",   "heavy"};
  return names[static_cast<size_t>(order)];
}
const char* name_of(Operation operation) noexcept {
  constexpr const char* names[] = {"load",  "store",       "exchange",  "failed exchange",
                                   "fence", "light fence", "membarrier"};
  return names[static_cast<size_t>(operation)];
}

Order Sites::order_of(uintptr_t address, Operation operation, Order order) {
  const Key key{address, operation};
  seen_.emplace(key, order);
  if (tried_ == nullptr) return order;
  const auto found = site_of_.find(key);
  return found != site_of_.end() && found->second == tried_->site ? tried_->to : order;
}

bool Sites::is_dropped(uintptr_t address, Operation operation) {
  if (tried_ == nullptr || !tried_->dropped) return false;
  const auto found = site_of_.find({address, operation});
  return found != site_of_.end() && found->second == tried_->site;
}

void Sites::name_all(uintptr_t another) {
  std::set<uintptr_t> unnamed;
  if (another != 0 && !lines_.contains(another)) unnamed.insert(another);
  for (const auto& [key, order] : seen_)
    if (!lines_.contains(key.address)) unnamed.insert(key.address);
  if (!unnamed.empty()) {
    std::array<char, 4096> program{};
    if (readlink("/proc/self/exe", program.data(), program.size() - 1) < 0) return;
    std::string command = std::string(LINTEL_ADDR2LINE " -a -i -f -C -e '") + program.data() + "'";
    for (const uintptr_t address : unnamed) {
      char text[32];
      std::snprintf(text, sizeof text, " 0x%zx",
                    address - 1 - reinterpret_cast<uintptr_t>(&__executable_start));
      command += text;
    }
    if (FILE* output = popen(command.c_str(), "r"); output != nullptr) {
      std::array<char, 4096> line{};
      auto next = unnamed.begin();
      Place* name = nullptr;
      std::string function;
      bool is_function = true;  // a line with its name comes before that with its place
      while (std::fgets(line.data(), line.size(), output) != nullptr) {
        std::string text(line.data());
        text.resize(text.find_last_not_of(" \n") + 1);
        if (text.starts_with("0x")) {
          name = &(lines_[*next++] = {});
          is_function = true;
          continue;
        }
        if (is_function) function = short_name(text);
        // The innermost function that does not belong to the C++ library.
        if (!is_function && name != nullptr && name->file.empty() &&
            text.find("/c++/") == std::string::npos)
          *name = place_of(text, function);
        is_function = !is_function;
      }
      pclose(output);
    }
  }
  sites_.clear();
  site_of_.clear();
  std::map<Key, Site> sites;
  for (const auto& [key, order] : seen_) {
    Site site{lines_[key.address], key.operation, order, 0};
    if (std::find(sites_.begin(), sites_.end(), site) == sites_.end()) sites_.push_back(site);
    sites.emplace(key, site);
  }
  std::sort(sites_.begin(), sites_.end());
  for (const auto& [key, site] : sites)
    site_of_[key] =
        static_cast<size_t>(std::find(sites_.begin(), sites_.end(), site) - sites_.begin());
  // Those of the same kind in one function are numbered.
  const auto is_alike = [](const Site& a, const Site& b) {
    return a.place.function == b.place.function && a.operation == b.operation && a.order == b.order;
  };
  for (size_t i = 0; i < sites_.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (is_alike(sites_[j], sites_[i])) {
        sites_[j].number = std::max(sites_[j].number, 1u);
        sites_[i].number = sites_[j].number + 1;
      }
}

std::vector<Weakening> Sites::weakenings(const std::vector<const char*>& files) const {
  std::vector<Weakening> found;
  for (size_t i = 0; i < sites_.size(); ++i) {
    const Site& site = sites_[i];
    if (std::none_of(files.begin(), files.end(),
                     [&](const char* file) { return site.place.file.starts_with(file); }))
      continue;
    const auto weaker = [&](Order to) { found.push_back({i, to, false}); };
    switch (site.order) {
      case Order::relaxed:
        break;
      case Order::acquire:
      case Order::release:
        if (site.operation == Operation::fence) {
          found.push_back({i, Order::relaxed, true});
        } else {
          weaker(Order::relaxed);
        }
        break;
      case Order::acq_rel:
        weaker(Order::acquire);
        weaker(Order::release);
        break;
      case Order::seq_cst:
        weaker(site.operation == Operation::load    ? Order::acquire
               : site.operation == Operation::store ? Order::release
                                                    : Order::acq_rel);
        if (site.operation == Operation::fence) {
          found.push_back({i, Order::relaxed, true});
        } else {
          weaker(Order::relaxed);
        }
        break;
      case Order::light:
      case Order::heavy:
        found.push_back({i, Order::relaxed, true});
        break;
    }
  }
  return found;
}

std::string Sites::text(const Weakening& weakening) const {
  const Site& site = sites_[weakening.site];
  std::string text = text_of(site.place);
  if (site.number != 0) text += "#" + std::to_string(site.number);
  text += std::string(" ") + name_of(site.operation);
  if (site.operation < Operation::light) text += std::string(" ") + name_of(site.order);
  return text + " -> " + (weakening.dropped ? "none" : name_of(weakening.to));
}

std::string Sites::line_of(uintptr_t address) const {
  const auto found = lines_.find(address);
  return found == lines_.end() ? "?" : text_of(found->second);
}

void Sites::forget() noexcept {
  seen_.clear();
  site_of_.clear();
  sites_.clear();
  tried_ = nullptr;
}

}  // namespace lintel::model
