package container

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/tests/kit/must"
)

// TestLogins: the users of the variables become a JAAS file, also if the passwords are in
// files, and a mistake is an error without the password.
func TestLogins(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(dir, "passwords"), []byte("one;two\n"), 0o600))
	logins := func(env map[string]string) (string, error) {
		path, err := FromEnvironment([]string{"ZOO_CONF_DIR=" + dir}).Logins(func(name string) string { return env[name] })
		if err != nil || path == "" {
			return "", err
		}
		return string(must.Get(os.ReadFile(path))(t)), nil
	}
	env := map[string]string{"ZOO_SERVER_USERS": "a, b", "ZOO_SERVER_PASSWORDS_FILE": dir + "/passwords", "ZOO_QUORUM_SERVER_USERS": "zk", "ZOO_QUORUM_SERVER_PASSWORDS": "q",
		"ZOO_QUORUM_LEARNER_USER": "zk", "ZOO_QUORUM_LEARNER_PASSWORD": "q"}
	const module = "    org.apache.zookeeper.server.auth.DigestLoginModule required\n"
	want := "Server {\n" + module + "    user_a=\"one\"\n    user_b=\"two\";\n};\nQuorumServer {\n" + module + "    user_zk=\"q\";\n};\nQuorumLearner {\n" + module + "    username=\"zk\"\n    password=\"q\";\n};\n"
	for range 2 { // also over an existing file
		if got, err := logins(env); err != nil || got != want {
			t.Errorf("%v\n%s", err, got)
		}
	}
	if got, err := logins(nil); got != "" || err != nil {
		t.Errorf("without users: %q, %v", got, err)
	}
	for _, env := range []map[string]string{
		{"ZOO_SERVER_USERS": "a,b", "ZOO_SERVER_PASSWORDS": "hidden"},
		{"ZOO_SERVER_USERS": "a", "ZOO_SERVER_PASSWORDS": `hidden"`},
		{"ZOO_SERVER_USERS": "a", "ZOO_SERVER_PASSWORDS_FILE": dir + "/none"},
		{"ZOO_QUORUM_LEARNER_USER": "zk"},
	} {
		if _, err := logins(env); err == nil || strings.Contains(err.Error(), "hidden") {
			t.Errorf("%v: %v", env, err)
		}
	}
}
