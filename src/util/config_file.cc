#include "util/config_file.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "util/config_parse.h"
#include "util/new_descriptor.h"

namespace lintel {

namespace {

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
