#include "util/config_file.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "util/config_parse.h"

namespace lintel {

namespace {

std::string_view without_quotes(std::string_view value) {
  return value.size() >= 2 && value.front() == '"' && value.back() == '"'
             ? value.substr(1, value.size() - 2)
             : value;
}

}  // namespace

std::vector<ConfigSetting> read_config_file(const std::string& path,
                                            std::vector<std::string>& complaints) {
  std::vector<ConfigSetting> settings;
  const auto complain = [&] {
    complaints.push_back(path + " cannot be read: " + std::strerror(errno));
  };
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "re"), fclose);
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
    settings.push_back(
        {std::string(name), std::string(without_quotes(trim(line.substr(equals + 1)))), place});
  }
  if (std::ferror(file.get()) != 0) complain();  // as of a directory
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
