package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/zkgo/zkgo/internal/smallfile"
	"github.com/zkgo/zkgo/server/keystore"
)

// readProperties reads the supported settings from a properties file of ZooKeeper's
// Java client.
func (f *connectFlags) readProperties() error {
	text, err := smallfile.Read(f.properties)
	if err != nil {
		return fmt.Errorf("-client-configuration: %w", err)
	}
	values := properties(string(text))
	get := func(key string) string { return values["zookeeper."+key] }
	store := func(name string) keystore.Store {
		return keystore.Store{
			Location: get(name + ".location"), Password: get(name + ".password"),
			PasswordPath: get(name + ".passwordPath"), Type: get(name + ".type"),
		}
	}
	if secure := get("client.secure"); strings.EqualFold(secure, "true") {
		f.tls = true
		f.own, f.trust = store("ssl.keyStore"), store("ssl.trustStore")
		f.noHostname = strings.EqualFold(get("ssl.hostnameVerification"), "false")
	}
	if size := values["jute.maxbuffer"]; size != "" {
		if f.maxReply, err = parseInt(size); err != nil {
			return fmt.Errorf("-client-configuration %s: jute.maxbuffer=%s is no number of bytes", f.properties, size)
		}
	}
	return nil
}

// parseInt parses a positive number, decimal or hexadecimal, as Java does.
func parseInt(text string) (int, error) {
	n, err := strconv.ParseInt(text, 0, 32)
	if err == nil && n <= 0 {
		err = strconv.ErrRange
	}
	return int(n), err
}

// properties parses a Java properties file. Keys may have the prefix "zookeeper.".
func properties(text string) map[string]string {
	values := map[string]string{}
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\\\n", "")
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' || line[0] == '!' {
			continue
		}
		at := strings.IndexAny(line, "=: \t")
		if at < 0 {
			at = len(line)
		}
		value := strings.TrimSpace(strings.TrimLeft(line[at:], "=: \t"))
		values[line[:at]] = strings.ReplaceAll(value, `\\`, `\`)
	}
	return values
}
