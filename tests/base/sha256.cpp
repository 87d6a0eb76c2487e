// SPDX-License-Identifier: Apache-2.0
#include "lib/base/sha256.h"

#include <gtest/gtest.h>

#include <string>

namespace vartml {
namespace {

std::string hex(const std::string& text) {
    return to_hex(sha256(std::as_bytes(std::span(text))));
}

// Digests of the examples that NIST publishes with FIPS 180-4 ("SHA256.pdf").
TEST(Sha256, GivesThePublishedDigests) {
    EXPECT_EQ(hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    EXPECT_EQ(hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    EXPECT_EQ(hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
              "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    EXPECT_EQ(hex(std::string(1000000, 'a')),
              "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, DoesNotDependOnHowTheMessageIsCut) {
    std::string text;
    for (int i = 0; i < 300; ++i) text += static_cast<char>(i * 7);
    const auto bytes = std::as_bytes(std::span(text));
    for (size_t cut = 0; cut <= text.size(); ++cut) {
        Sha256 hash;
        hash.update(bytes.first(cut));
        hash.update(bytes.subspan(cut));
        ASSERT_EQ(hash.finish(), sha256(bytes)) << "cut at " << cut;
    }
}

}  // namespace
}  // namespace vartml
