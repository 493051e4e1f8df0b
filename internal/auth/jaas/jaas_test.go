package jaas

import (
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/internal/sasl"
)

const text = `
// who may connect
Client { x.y.Other required user_no="1"; };
Server {
    org.apache.zookeeper.server.auth.DigestLoginModule required /* two
       of them */
    user_super="admin\\secret"
    # the second
    user_bob="bob=;{}secret" user_empty="";
};
`

func TestUsers(t *testing.T) {
	t.Parallel()
	got, err := Users(text, "Server")
	want := sasl.Users{"super": `admin\secret`, "bob": "bob=;{}secret", "empty": ""}
	if err != nil || !maps.Equal(got, want) {
		t.Fatalf("Users = %v, %v", got, err)
	}
	for jaas, part := range map[string]string{
		text:                                   `"Client"`,
		"":                                     "no section",
		`Client { "escaped\" };`:               "line 1",
		`Client { "backslash\`:                 "line 1",
		"Client {\n \"two\nlines\" };":         "line 2",
		`Client { a.DigestLoginModule r; };`:   "no user",
		`Client { "unclosed };`:                "line 1",
		"\nClient { /* unclosed };":            "line 2",
		`Client { a.DigestLoginModule user_x;`: "no value",
	} {
		if _, err := Users(jaas, "Client"); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%q: error %v does not say %s", jaas, err, part)
		}
	}
}

// TestLogin parses the section in ZooKeeper's guide, and covers errors in other
// sections.
func TestLogin(t *testing.T) {
	t.Parallel()
	const good = `QuorumServer { a.DigestLoginModule required user_test="x"; };
QuorumLearner {
       org.apache.zookeeper.server.auth.DigestLoginModule required
       username="test"
       password="pass=word;";
};`
	user, password, err := Login(good, "QuorumLearner")
	if err != nil || user != "test" || password != "pass=word;" {
		t.Fatalf("Login = %q, %q, %v", user, password, err)
	}
	if users, err := Users(good, "QuorumServer"); err != nil || !maps.Equal(users, sasl.Users{"test": "x"}) {
		t.Errorf("Users = %v, %v", users, err)
	}
	for text, part := range map[string]string{
		good:                                     `"L" does`,
		"":                                       `no section "L"`,
		`L { a.Krb5LoginModule r; };`:            "does not use DigestLoginModule",
		`L { a.DigestLoginModule r; };`:          "no username",
		`L { DigestLoginModule username="x"; };`: "no password",
		`L { DigestLoginModule password="x"; };`: "no username",
		`L { DigestLoginModule username=`:        "line 1: username has no value",
	} {
		text = strings.Replace(text, "QuorumServer { a.Digest", "L { a.Other", 1)
		if _, _, err := Login(text, "L"); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%q: error %v does not say %s", text, err, part)
		}
	}
	if _, _, err := Login("", "L"); !errors.Is(err, ErrNoSection) {
		t.Errorf("a missing section: %v", err)
	}
}

// TestEscapes expects the values that the login configuration of OpenJDK 17 has for the
// same text.
func TestEscapes(t *testing.T) {
	t.Parallel()
	for quoted, want := range map[string]string{
		`a\\b`:                `a\b`,
		`pa\"ss;`:             `pa"ss;`,
		`\a\b\f\n\r\t\v`:      "\a\b\f\n\r\t\v",
		`\x\'\/\ü`:            "x'/ü",
		`\101\60\7`:           "A0\a",
		`\377\477\18\0`:       "ÿ\x277\x018\x00",
		"line\\\nfeed":        "line\nfeed",
		`\\`:                  `\`,
		`"` + "\n user_b=\"x": "",
	} {
		got, err := Users(`S { a.DigestLoginModule required user_a="`+quoted+`"; };`, "S")
		if err != nil || got["a"] != want {
			t.Errorf("%q: %q, %v, want %q", quoted, got["a"], err, want)
		}
	}
}
