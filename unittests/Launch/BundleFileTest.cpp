//===- BundleFileTest.cpp - tests of the bytes of bundles -----------------===//
#include "attn/Launch/BundleFile.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace mlir::attn;

static Bundle makeBundle() {
  Bundle bundle;
  bundle.launch.steps.emplace_back().kernel = "k";
  bundle.launch.chip = "sm_80";
  bundle.launch.ptxVersion = 80;
  bundle.images = {{BundleImage::Kind::Cubin, "sm_80", "some code"},
                   {BundleImage::Kind::PTX, "sm_80", ".version 8.0"}};
  return bundle;
}

static std::string getError(llvm::StringRef bytes) {
  return llvm::toString(readBundle(bytes).takeError());
}

TEST(BundleFile, ReadsWhatItWrites) {
  std::string bytes = writeBundle(makeBundle());
  EXPECT_TRUE(isBundle(bytes));
  auto bundle = readBundle(bytes);
  ASSERT_TRUE(bool(bundle)) << llvm::toString(bundle.takeError());
  EXPECT_EQ(bundle->launch.steps[0].kernel, "k");
  ASSERT_EQ(bundle->images.size(), 2u);
  EXPECT_EQ(bundle->images[0].kind, BundleImage::Kind::Cubin);
  EXPECT_EQ(bundle->images[0].bytes, "some code");
  EXPECT_EQ(bundle->images[1].kind, BundleImage::Kind::PTX);
  EXPECT_EQ(bundle->images[1].chip, "sm_80");
  EXPECT_EQ(writeBundle(*bundle), bytes);
}

TEST(BundleFile, RefusesDamage) {
  std::string bytes = writeBundle(makeBundle());
  EXPECT_EQ(getError("ATTNBNDL"), "damaged bundle: no complete preamble");
  std::string other = bytes;
  other[8] = 2;
  EXPECT_EQ(getError(other), "expected a bundle of version 1, got version 2");
  other = bytes;
  other[60] ^= 1;
  EXPECT_EQ(getError(other),
            "damaged bundle: the header differs from its hash");
  other = bytes;
  other.back() ^= 1;
  EXPECT_EQ(getError(other), "damaged bundle: an image differs from its hash");
  other = bytes;
  other.resize(other.size() - 1);
  EXPECT_EQ(getError(other), "damaged bundle: an image ends behind the file");
}
