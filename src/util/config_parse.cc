// Readers for the types of configuration variables. Set-up path.
#include "util/config_parse.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "util/new_descriptor.h"

namespace lintel {

namespace {

constexpr unsigned max_cpu = 4095;

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool same_word(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return lower(x) == lower(y); });
}

unsigned suffix_shift(char suffix) {
  switch (lower(suffix)) {
    case 'k':
      return 10;
    case 'm':
      return 20;
    case 'g':
      return 30;
    default:
      return 0;
  }
}

constexpr std::string_view blanks = " \t";

// A value in quotes is what is between them. A comment begins with # at the start or after a blank.
std::string_view value_of(std::string_view text) {
  const std::string_view value = trim(text);
  const size_t quote = value.size() >= 2 && value.front() == '"' ? value.find('"', 1) : value.npos;
  if (quote != value.npos) {
    const std::string_view rest = trim(value.substr(quote + 1));
    if (rest.empty() || rest.front() == '#') return value.substr(1, quote - 1);
  }
  for (size_t at = value.find('#'); at != value.npos; at = value.find('#', at + 1))
    if (at == 0 || blanks.find(value[at - 1]) != blanks.npos) return trim(value.substr(0, at));
  return value;
}

}  // namespace

std::string_view trim(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

std::optional<uint64_t> parse_number(std::string_view text, bool allow_suffix,
                                     bool allow_hexadecimal) {
  text = trim(text);
  unsigned shift = 0;
  int base = 10;
  if (allow_hexadecimal && (text.starts_with("0x") || text.starts_with("0X"))) {
    text.remove_prefix(2);
    base = 16;
  }
  if (allow_suffix && !text.empty()) {
    shift = suffix_shift(text.back());
    if (shift != 0) text.remove_suffix(1);
  }
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  if (value > std::numeric_limits<uint64_t>::max() >> shift) return std::nullopt;
  return value << shift;
}

std::optional<bool> parse_boolean(std::string_view text) {
  text = trim(text);
  for (const char* word : {"1", "true", "yes", "on"})
    if (same_word(text, word)) return true;
  for (const char* word : {"0", "false", "no", "off"})
    if (same_word(text, word)) return false;
  return std::nullopt;
}

std::optional<unsigned> parse_choice(std::string_view text, std::string_view choices) {
  text = trim(text);
  const std::vector<std::string> words = split_words(choices, '|');
  for (unsigned i = 0; i < words.size(); ++i)
    if (same_word(text, words[i])) return i;
  return std::nullopt;
}

std::optional<std::vector<unsigned>> parse_cpu_list(std::string_view text) {
  std::vector<unsigned> cpus;
  if (trim(text).empty()) return cpus;
  for (const std::string& word : split_words(text, ',')) {
    const size_t dash = word.find('-');
    const auto first = parse_number(word.substr(0, dash), false);
    const auto last =
        dash == std::string::npos ? first : parse_number(word.substr(dash + 1), false);
    if (!first || !last || *first > *last || *last > max_cpu) return std::nullopt;
    for (uint64_t cpu = *first; cpu <= *last; ++cpu) cpus.push_back(static_cast<unsigned>(cpu));
  }
  if (cpus.empty()) return std::nullopt;
  std::sort(cpus.begin(), cpus.end());
  cpus.erase(std::unique(cpus.begin(), cpus.end()), cpus.end());
  return cpus;
}

std::vector<std::string> split_words(std::string_view text, char separator) {
  std::vector<std::string> words;
  while (!text.empty()) {
    const size_t length = std::min(text.find(separator), text.size());
    const std::string_view word = trim(text.substr(0, length));
    if (!word.empty()) words.emplace_back(word);
    text.remove_prefix(std::min(length + 1, text.size()));
  }
  return words;
}

std::optional<uint64_t> parse_value(const ConfigVariable& variable, std::string_view text) {
  switch (variable.type) {
    case ConfigType::optional:
      if (text.empty()) return 0;
      [[fallthrough]];
    case ConfigType::u64: {
      const std::string_view unit = variable.unit;
      // A number without a unit may be an identifier.
      const std::optional<uint64_t> value = parse_number(text, unit == "bytes", unit.empty());
      if (!value || *value < variable.minimum || *value > variable.maximum) return std::nullopt;
      return value;
    }
    case ConfigType::report:
      if (text.starts_with(stats_file_prefix) && text.size() > stats_file_prefix.size()) return 1;
      [[fallthrough]];
    case ConfigType::boolean:
      return parse_boolean(text);
    case ConfigType::choice:
      return parse_choice(text, variable.choices);
    case ConfigType::cpu_list:
      if (!parse_cpu_list(text)) return std::nullopt;
      return 0;
    case ConfigType::list:
      if (split_words(text, ',').empty()) return std::nullopt;
      return 0;
    case ConfigType::text:
    case ConfigType::secret:
      return 0;
  }
  return std::nullopt;
}

unsigned edit_distance(std::string_view a, std::string_view b) {
  // Rows of the usual table: the two before the current one are needed for swaps of neighbours.
  std::vector<unsigned> before_last(b.size() + 1), last(b.size() + 1), current(b.size() + 1);
  for (unsigned j = 0; j <= b.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    current[0] = static_cast<unsigned>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const unsigned change = a[i - 1] == b[j - 1] ? 0 : 1;
      current[j] = std::min({last[j] + 1, current[j - 1] + 1, last[j - 1] + change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        current[j] = std::min(current[j], before_last[j - 2] + 1);
    }
    before_last.swap(last);
    last.swap(current);
  }
  return last[b.size()];
}

std::vector<ConfigSetting> read_config_file(const std::string& path,
                                            std::vector<std::string>& complaints) {
  std::vector<ConfigSetting> settings;
  const auto complain = [&] {
    complaints.push_back(path + " cannot be read: " + std::strerror(errno));
  };
  const Stream file = open_for_reading(path.c_str());
  if (file == nullptr) {
    if (errno != ENOENT && errno != ENOTDIR) complain();
    return settings;
  }
  char* text = nullptr;
  size_t room = 0;
  ssize_t length = 0;
  for (unsigned number = 1; (length = getline(&text, &room, file.get())) >= 0; ++number) {
    const std::string_view line = trim({text, static_cast<size_t>(length)});
    if (line.empty() || line.front() == '#') continue;
    const std::string place = path + ":" + std::to_string(number);
    const size_t equals = line.find('=');
    const std::string_view name = trim(line.substr(0, std::min(equals, line.size())));
    if (equals == std::string_view::npos || name.empty()) {
      complaints.push_back(place + ": ignored, as it is not a line NAME = value");
      continue;
    }
    std::erase_if(settings, [&](const ConfigSetting& setting) { return setting.name == name; });
    settings.push_back({std::string(name), std::string(value_of(line.substr(equals + 1))), place});
  }
  if (std::ferror(file.get()) != 0) complain();  // for example, the path is a directory
  std::free(text);
  return settings;
}

std::string user_config_file() {
  const char* const directory = secure_getenv("XDG_CONFIG_HOME");
  if (directory != nullptr && *directory == '/') return std::string(directory) + "/lintel.conf";
  const char* const home = secure_getenv("HOME");
  return home != nullptr && *home == '/' ? std::string(home) + "/.config/lintel.conf" : "";
}

}  // namespace lintel
