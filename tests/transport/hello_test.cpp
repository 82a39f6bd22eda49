#include "strait/transport/tcp/hello.h"

#include <gtest/gtest.h>

#include "strait/base/error.h"
#include "strait/transport/tcp/words.h"

namespace strait {
namespace {

TEST(Hello, ComesBack) {
  tcp::Hello hello{.attempt = "a", .rank = 2, .ranks = 3, .to = 1, .token = "t", .relayed = true, .joins = {}};
  hello.connections = 4;
  hello.received = uint64_t{1} << 40;
  EXPECT_EQ(hello.text(), R"({"attempt":"a","connections":4,"rank":2,"ranks":3,"received":1099511627776,)"
                          R"("relayed":true,"to":1,"token":"t"})");
  EXPECT_EQ(tcp::Hello::parse(hello.text()).text(), hello.text());
  EXPECT_FALSE(tcp::Hello::parse(hello.text()).joins);
  hello.joins = 7;
  EXPECT_EQ(tcp::Hello::parse(hello.text()).joins, 7U);
}

TEST(Hello, WithoutConnectionsHasOne) {
  const std::string text =
      R"({"attempt":"a","rank":0,"ranks":2,"received":0,"relayed":false,"to":1,"token":"t"})";
  EXPECT_EQ(tcp::Hello::parse(text).connections, 1);
}

TEST(Hello, ThatIsNoneIsAnErrorOfTheWire) {
  for (const char* text :
       {"", "[]", "{}", R"({"attempt":"a","rank":"0","ranks":2,"received":0,"to":1,"token":"t"})"})
    EXPECT_THROW(tcp::Hello::parse(text), WireError) << text;
}

TEST(Welcome, ComesBack) {
  const tcp::Welcome welcome{.token = "t", .connections = 4, .received = 5, .bundle = 6};
  const tcp::Welcome back = tcp::Welcome::parse(R"({"token":"t","connections":4,"received":5,"bundle":6})");
  EXPECT_EQ(back.text(), welcome.text());
  EXPECT_EQ(back.received, 5U);
  EXPECT_FALSE(back.refused);
}

TEST(Welcome, ThatRefusesSaysWhyAlone) {
  EXPECT_EQ(tcp::Welcome{.refused = "taken"}.text(), R"({"refused":"taken"})");
  EXPECT_EQ(tcp::Welcome::parse(R"({"refused":""})").refused, "");
  EXPECT_THROW(tcp::Welcome::parse(R"({"refused":3})"), WireError);
  EXPECT_THROW(tcp::Welcome::parse(R"({"token":"t"})"), WireError) << "how much has come";
}

TEST(Failure, OfARankThatIsNoneIsAnErrorOfTheWire) {
  const auto said = tcp::parse(tcp::text_of(Failure{.rank = 1, .diverged = true, .reason = "a disk"}));
  EXPECT_EQ(tcp::failure_in(said, 2).reason, "a disk");
  EXPECT_TRUE(tcp::failure_in(said, 2).diverged);
  EXPECT_THROW(tcp::failure_in(said, 1), WireError);
  const Failure longer{.rank = 0, .diverged = false, .reason = std::string(3000, 'x')};
  EXPECT_EQ(tcp::failure_in(tcp::parse(tcp::text_of(longer)), 1).reason, std::string(2000, 'x'));
}

}  // namespace
}  // namespace strait
