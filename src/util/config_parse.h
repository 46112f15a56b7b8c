// Parser of the text of configuration variables. Set-up path.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "util/config.h"

namespace lintel {

// Digits; for a number of bytes followed by K, M or G (powers of 1024). Or hexadecimal digits after
// 0x. Nothing on overflow.
[[nodiscard]] std::optional<uint64_t> parse_number(std::string_view text, bool allow_suffix,
                                                   bool allow_hexadecimal = false);
[[nodiscard]] std::optional<bool> parse_boolean(std::string_view text);
// The position of `text` among the words of `choices`, which are separated by '|'.
[[nodiscard]] std::optional<unsigned> parse_choice(std::string_view text, std::string_view choices);
// Sorted, without duplicates. Nothing if the text is not a list of processors below 4096.
[[nodiscard]] std::optional<std::vector<unsigned>> parse_cpu_list(std::string_view text);
[[nodiscard]] std::string_view trim(std::string_view text);  // removes blanks at both ends
[[nodiscard]] std::vector<std::string> split_words(std::string_view text, char separator);

// The value of a variable as a number (0 for text), or nothing if the table does not allow it.
[[nodiscard]] std::optional<uint64_t> parse_value(const ConfigVariable& variable,
                                                  std::string_view text);

// Number of single-character changes, insertions, deletions and swaps of neighbours between two
// names: finds the variable that a misspelt one was meant to be.
[[nodiscard]] unsigned edit_distance(std::string_view a, std::string_view b);

// A line NAME = value of a configuration file, with the name of an environment variable.
struct ConfigSetting {
  std::string name;
  std::string value;
  std::string place;  // "/etc/lintel.conf:3"
};

// Empty lines and those that start with # are skipped; blanks around name and value, and a pair of
// double quotes around the value, are dropped. Of several lines with one name the last one counts.
// A file that does not exist has no settings; one that cannot be read, and lines that are none, are
// complained of.
[[nodiscard]] std::vector<ConfigSetting> read_config_file(const std::string& path,
                                                          std::vector<std::string>& complaints);

// The file of the user: $XDG_CONFIG_HOME/lintel.conf, ~/.config/lintel.conf without that variable;
// empty where neither is known, or for programs that run with the rights of another user.
[[nodiscard]] std::string user_config_file();
// The file of the system.
inline constexpr const char* system_config_file = "/etc/lintel.conf";

}  // namespace lintel
