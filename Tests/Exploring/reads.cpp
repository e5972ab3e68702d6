// Reads lines by C++'s input stream from a standard input that is a pipe, while another thread works.

#include <iostream>
#include <mutex>
#include <string>
#include <thread>

int main(int arguments, char **) {
  // Then it reads by itself.
  if (arguments > 1) std::ios::sync_with_stdio(false);
  std::mutex mutex;
  int count = 0;
  std::thread other([&] {
    for (int i = 0; i < 5; i++) {
      std::lock_guard<std::mutex> guard(mutex);
      count++;
    }
  });
  std::string line, word;
  if (!std::getline(std::cin, line) || line != "one") return 2;
  if (std::cin.get() != 't' || !std::cin.unget() || !(std::cin >> word) || word != "two") return 3;
  if (std::getline(std::cin, line) && !line.empty()) return 4;
  if (std::getline(std::cin, line) || !std::cin.eof()) return 5;
  other.join();
  std::cout << count << std::endl;
  return count == 5 ? 0 : 6;
}
