// Data objects: formats, and buffers filled in afterwards.

#include "check.h"

static dispatch_data_t bytes_of(const void *bytes, size_t size) { return dispatch_data_create_f(bytes, size, NULL, NULL); }

// Takes over `data`.
static bool is(dispatch_data_t data, const void *bytes, size_t size) {
  if (data == NULL) return false;
  const void *got;
  size_t got_size;
  dispatch_data_t map = dispatch_data_create_map(data, &got, &got_size);
  bool same = got_size == size && (size == 0 || memcmp(got, bytes, size) == 0);
  dispatch_release(map);
  dispatch_release(data);
  return same;
}

static void both_ways(dispatch_data_format_type_t format, const char *plain, const char *encoded) {
  dispatch_data_t data = bytes_of(plain, strlen(plain));
  dispatch_data_t code = bytes_of(encoded, strlen(encoded));
  check_that(is(dispatch_data_create_with_transform(data, DISPATCH_DATA_FORMAT_TYPE_NONE, format), encoded,
                strlen(encoded)),
             encoded, __FILE__, __LINE__);
  // The toolchain's library cannot read its own output there.
  bool readable = on_concourse() || format != DISPATCH_DATA_FORMAT_TYPE_BASE32HEX;
  if (readable) {
    check_that(is(dispatch_data_create_with_transform(code, format, DISPATCH_DATA_FORMAT_TYPE_NONE), plain,
                  strlen(plain)),
               plain, __FILE__, __LINE__);
  }
  dispatch_release(data);
  dispatch_release(code);
}

int main(void) {
  void *buffer = NULL;
  dispatch_data_t filled = dispatch_data_create_alloc(6, &buffer);
  check(buffer != NULL);
  check_equal(dispatch_data_get_size(filled), 6);
  memcpy(buffer, "filled", 6);
  check(is(filled, "filled", 6));

  static char lasting[] = "nobody's";
  dispatch_data_t borrowed = dispatch_data_create_f(lasting, 8, NULL, (dispatch_function_t)DISPATCH_DATA_DESTRUCTOR_NONE);
  const void *address;
  dispatch_data_t map = dispatch_data_create_map(borrowed, &address, NULL);
  check(address == (void *)lasting);
  dispatch_release(map);
  dispatch_release(borrowed);
  check(strcmp(lasting, "nobody's") == 0);

  // The examples of RFC 4648.
  static const char *const plain[] = {"f", "fo", "foo", "foob", "fooba", "foobar"};
  static const char *const base64[] = {"Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"};
  static const char *const base32[] = {"MY======", "MZXQ====", "MZXW6===", "MZXW6YQ=", "MZXW6YTB", "MZXW6YTBOI======"};
  static const char *const base32hex[] = {"CO======", "CPNG====", "CPNMU===", "CPNMUOG=", "CPNMUOJ1", "CPNMUOJ1E8======"};
  for (int i = 0; i < 6; i++) {
    both_ways(DISPATCH_DATA_FORMAT_TYPE_BASE64, plain[i], base64[i]);
    both_ways(DISPATCH_DATA_FORMAT_TYPE_BASE32, plain[i], base32[i]);
    both_ways(DISPATCH_DATA_FORMAT_TYPE_BASE32HEX, plain[i], base32hex[i]);
  }
  dispatch_data_t broken = bytes_of("a*b=", 4);
  check(dispatch_data_create_with_transform(broken, DISPATCH_DATA_FORMAT_TYPE_BASE64, DISPATCH_DATA_FORMAT_TYPE_NONE) == NULL);
  dispatch_release(broken);

  dispatch_data_t utf8 = bytes_of("a\xc3\xa9", 3);
  dispatch_data_t little = dispatch_data_create_with_transform(utf8, DISPATCH_DATA_FORMAT_TYPE_UTF8, DISPATCH_DATA_FORMAT_TYPE_UTF16LE);
  check(little != NULL);
  if (little) {
    // With a leading byte order mark.
    dispatch_retain(little);
    check(is(little, "\xff\xfe\x61\x00\xe9\x00", 6));
    check(is(dispatch_data_create_with_transform(little, DISPATCH_DATA_FORMAT_TYPE_UTF16LE, DISPATCH_DATA_FORMAT_TYPE_UTF8), "a\xc3\xa9", 3));
    dispatch_release(little);
  }
  check(is(dispatch_data_create_with_transform(utf8, DISPATCH_DATA_FORMAT_TYPE_UTF8, DISPATCH_DATA_FORMAT_TYPE_UTF16BE),
           "\xfe\xff\x00\x61\x00\xe9", 6));
  dispatch_data_t big = bytes_of("\xfe\xff\x00\x61\x00\xe9", 6);
  check(is(dispatch_data_create_with_transform(big, DISPATCH_DATA_FORMAT_TYPE_UTF_ANY, DISPATCH_DATA_FORMAT_TYPE_UTF8), "a\xc3\xa9", 3));
  check(is(dispatch_data_create_with_transform(big, DISPATCH_DATA_FORMAT_TYPE_UTF16BE, DISPATCH_DATA_FORMAT_TYPE_UTF8), "a\xc3\xa9", 3));
  dispatch_data_t not_utf8 = bytes_of("\xff\xff", 2);
  check(dispatch_data_create_with_transform(not_utf8, DISPATCH_DATA_FORMAT_TYPE_UTF8, DISPATCH_DATA_FORMAT_TYPE_UTF16LE) == NULL);
  dispatch_release(not_utf8);
  dispatch_release(big);
  dispatch_release(utf8);
  return finish();
}
