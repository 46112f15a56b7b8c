// A configuration file: lines NAME = value, with the names of environment variables. Set-up path.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lintel {

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
