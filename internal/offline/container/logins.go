package container

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/zkgo/zkgo/internal/smallfile"
)

// The variables of Bitnami's image for users and passwords. Each may have the suffix _FILE, and
// then names a file with the value.
const (
	serverUsers, serverPasswords = "ZOO_SERVER_USERS", "ZOO_SERVER_PASSWORDS"
	quorumUsers, quorumPasswords = "ZOO_QUORUM_SERVER_USERS", "ZOO_QUORUM_SERVER_PASSWORDS"
	learnerUser, learnerPassword = "ZOO_QUORUM_LEARNER_USER", "ZOO_QUORUM_LEARNER_PASSWORD"
	loginModule                  = "org.apache.zookeeper.server.auth.DigestLoginModule"
	jaasFile                     = "jaas.conf"
	inFile                       = "_FILE"
)

// loginVariables lists the variables with users and passwords.
func loginVariables() (names []string) {
	for _, name := range []string{serverUsers, serverPasswords, quorumUsers, quorumPasswords, learnerUser, learnerPassword} {
		names = append(names, name, name+inFile)
	}
	return names
}

// Logins writes the users and passwords of the variables to a JAAS file in the directory of
// zoo.cfg, and returns its path, or "" if the variables name no user. We write this file at every
// start, unlike zoo.cfg, so that a changed password applies.
func (p Plan) Logins(getenv func(string) string) (path string, err error) {
	var errs []error
	value := func(name string) string {
		v, err := variable(getenv, name)
		errs = append(errs, err)
		return v
	}
	var b strings.Builder
	add := func(section, users, passwords string) {
		text, err := usersSection(section, users, value(users), passwords, value(passwords))
		errs = append(errs, err)
		b.WriteString(text)
	}
	add("Server", serverUsers, serverPasswords)
	add("QuorumServer", quorumUsers, quorumPasswords)
	if user, password := value(learnerUser), value(learnerPassword); user != "" {
		errs = append(errs, quotable(learnerUser, user), quotable(learnerPassword, password))
		fmt.Fprintf(&b, "QuorumLearner {\n    %s required\n    username=\"%s\"\n    password=\"%s\";\n};\n", loginModule, user, password)
	}
	if err := errors.Join(errs...); err != nil || b.Len() == 0 {
		return "", err
	}
	path = filepath.Join(filepath.Dir(p.ConfigPath), jaasFile)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	return path, os.WriteFile(path, []byte(b.String()), 0o600)
}

// variable returns the value of a variable, or of the file that it names.
func variable(getenv func(string) string, name string) (string, error) {
	path := getenv(name + inFile)
	if path == "" {
		return getenv(name), nil
	}
	text, err := smallfile.Read(path)
	if err != nil {
		return "", fmt.Errorf("%s: %w", name+inFile, err)
	}
	return strings.TrimRight(string(text), "\r\n"), nil
}

// usersSection returns the section of a JAAS file with a list of users and their passwords.
func usersSection(section, usersName, users, passwordsName, passwords string) (string, error) {
	names, secrets := listed(users), listed(passwords)
	if len(names) == 0 {
		return "", nil
	}
	if len(names) != len(secrets) {
		return "", fmt.Errorf("%s has %d names, %s has %d passwords: each user needs one", usersName, len(names), passwordsName, len(secrets))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s {\n    %s required", section, loginModule)
	for i, name := range names {
		if err := errors.Join(quotable(usersName, name), quotable(passwordsName, secrets[i])); err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "\n    user_%s=\"%s\"", name, secrets[i])
	}
	b.WriteString(";\n};\n")
	return b.String(), nil
}

// listed returns the words of a list.
func listed(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return strings.ContainsRune(",; \t\r\n", r) })
}

// quotable returns an error, without the value, if it can't be in a JAAS file.
func quotable(variable, value string) error {
	if value == "" || strings.ContainsAny(value, "\"\\\n\r") {
		return fmt.Errorf("%s: a user or password is empty, or has a quote, a backslash or a line break, which a JAAS file cannot contain", variable)
	}
	return nil
}
