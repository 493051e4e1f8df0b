package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/zkgo/zkgo/internal/auth/keystore"
	"github.com/zkgo/zkgo/internal/smallfile"
	"github.com/zkgo/zkgo/internal/zoocfg"
)

// readProperties reads the supported settings from a properties file of ZooKeeper's
// Java client.
func (f *connectFlags) readProperties() error {
	text, err := smallfile.Read(f.properties)
	if err != nil {
		return fmt.Errorf("-client-configuration: %w", err)
	}
	values, err := zoocfg.Properties(string(text))
	if err != nil {
		return fmt.Errorf("-client-configuration %s: %w", f.properties, err)
	}
	get := func(key string) string { return strings.TrimSpace(values["zookeeper."+key]) }
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
	if size := strings.TrimSpace(values["jute.maxbuffer"]); size != "" {
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
