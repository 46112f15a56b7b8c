/* ident.cc: prints the texts that GASNETT_IDENT and the libraries keep in programs: $Name: text $.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>

namespace {

/** The end of the text that begins with the dollar sign at `start`, behind its last one. 0 if there
 * is no such text. */
size_t end_of_text(const std::string& bytes, size_t start) {
  size_t place = start + 1;
  if (!std::isalpha(static_cast<unsigned char>(bytes[place]))) return 0;
  while (std::isalnum(static_cast<unsigned char>(bytes[place]))) ++place;
  if (bytes.compare(place, 2, ": ") != 0) return 0;
  const size_t text = place + 2;
  for (place = text; place < bytes.size() && bytes[place] != '$'; ++place)
    if (!std::isprint(static_cast<unsigned char>(bytes[place]))) return 0;
  return place < bytes.size() && place > text && bytes[place - 1] == ' ' ? place + 1 : 0;
}

/** @return false if the file cannot be read or has no such text. */
bool print_texts(const char* path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    std::fprintf(stderr, "ident: %s: %s\n", path, std::strerror(errno));
    return false;
  }
  const std::string bytes(std::istreambuf_iterator<char>(file), {});
  std::printf("%s:\n", path);
  bool found = false;
  for (size_t start = 0; (start = bytes.find('$', start)) != std::string::npos;) {
    const size_t end = end_of_text(bytes, start);
    if (end != 0) std::printf("     %s\n", bytes.substr(start, end - start).c_str());
    found = found || end != 0;
    start = end != 0 ? end : start + 1;
  }
  if (!found) std::fprintf(stderr, "ident: %s has no texts of the form $Name: text $\n", path);
  return found;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || std::strcmp(argv[1], "-h") == 0 || std::strcmp(argv[1], "--help") == 0) {
    std::puts(
        "Prints the texts of the form $Name: text $ in programs and libraries.\n"
        "Usage: ident FILE...");
    return argc < 2 ? 2 : 0;
  }
  bool all = true;
  for (int i = 1; i < argc; ++i) all = print_texts(argv[i]) && all;
  return all ? 0 : 1;
}
