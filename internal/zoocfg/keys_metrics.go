package zoocfg

import (
	"fmt"
	"strconv"
	"strings"
)

const metricsPrefix = "metricsProvider."

// metricsKeys lists the keys of the metrics provider. The keys for HTTPS come from ZooKeeper 3.10.
// The keys for authentication and for files with passwords are specific to zkgo.
func metricsKeys() []key {
	all := []key{
		{name: metricsPrefix + "className", set: takes(setMetricsClass, func(c *Config) string { return c.Metrics.ClassName })},
		{name: metricsPrefix + "httpHost", set: setListenAddress(func(c *Config) *string { return &c.Metrics.HTTPHost })},
		{name: metricsPrefix + "httpPort", set: portNumber(func(c *Config) *int { return &c.Metrics.HTTPPort })},
		{name: metricsPrefix + "httpsPort", set: takes(setMetricsPort, func(c *Config) string { return strconv.Itoa(c.Metrics.HTTPSPort) })},
		{name: metricsPrefix + "exportJvmInfo", set: boolean(func(c *Config) *bool { return &c.Metrics.ExportJVMInfo })},
		{name: metricsPrefix + "ssl.need.client.auth", set: boolean(func(c *Config) *bool { return &c.Metrics.NeedClient })},
		{name: metricsPrefix + "ssl.want.client.auth", set: boolean(func(c *Config) *bool { return &c.Metrics.WantClient })},
		{name: metricsPrefix + "ssl.enabledProtocols", set: list(func(c *Config) *[]string { return &c.Metrics.EnabledProtocols })},
		{name: metricsPrefix + "ssl.ciphersuites", set: list(func(c *Config) *[]string { return &c.Metrics.CipherSuites })},
		{name: metricsPrefix + "auth.user", set: text(func(c *Config) *string { return &c.Metrics.User })},
		{name: metricsPrefix + "auth.password", set: text(func(c *Config) *string { return &c.Metrics.Password })},
		{name: metricsPrefix + "auth.passwordPath", set: text(func(c *Config) *string { return &c.Metrics.PasswordPath })},
		{name: metricsPrefix + "auth.tokenPath", set: text(func(c *Config) *string { return &c.Metrics.TokenPath })},
	}
	all = append(all, storeKeys(metricsPrefix+"ssl.keyStore.", func(c *Config) *Store { return &c.Metrics.KeyStore })...)
	return append(all, storeKeys(metricsPrefix+"ssl.trustStore.", func(c *Config) *Store { return &c.Metrics.TrustStore })...)
}

func setMetricsClass(c *Config, v string) error {
	const pkg = "org.apache.zookeeper.metrics."
	switch v {
	case pkg + "prometheus.PrometheusMetricsProvider", defaultMetrics, pkg + "impl.NullMetricsProvider":
		c.Metrics.ClassName = v
		c.Metrics.Enabled = strings.HasPrefix(v, pkg+"prometheus.")
		return nil
	}
	return expected("a class of ZooKeeper's ("+pkg+"prometheus.PrometheusMetricsProvider): metrics provider class was not found", v)
}

// setMetricsPort sets the port for HTTPS; −1 is none, as in ZooKeeper.
func setMetricsPort(c *Config, v string) error {
	if v == strconv.Itoa(Unset) {
		c.Metrics.HTTPSPort = Unset
		return nil
	}
	return portNumber(func(c *Config) *int { return &c.Metrics.HTTPSPort }).set(c, v)
}

// unknownMetricsKey refuses a key that nothing reads but that should protect the metrics. A
// provider may have any other key.
func unknownMetricsKey(name string) error {
	for _, section := range []string{"ssl.", "auth."} {
		if strings.HasPrefix(name, metricsPrefix+section) {
			return expected("a key of the metrics' TLS or authentication, as in docs/operate/security.md", name)
		}
	}
	return nil
}

// checkMetrics refuses settings that would protect the metrics less than the file asks for.
// With a port for HTTPS, there is a port for HTTP only if the file names it.
func (c *Config) checkMetrics() error {
	m := &c.Metrics
	if !m.Enabled {
		return nil
	}
	if m.HTTPSPort != Unset && !c.isSet(metricsPrefix+"httpPort") {
		m.HTTPPort = Unset
	}
	for _, k := range metricsKeys() {
		if m.HTTPSPort == Unset && strings.HasPrefix(k.name, metricsPrefix+"ssl.") && c.isSet(k.name) {
			return c.failf(k.name, "there is no TLS without a port for it: set %shttpsPort", metricsPrefix)
		}
	}
	secret := m.Password != "" || m.PasswordPath != ""
	switch {
	case m.User == "" && secret:
		return c.failf(metricsPrefix+"auth.user", "%sauth.user is not set: it belongs to the password", metricsPrefix)
	case m.User != "" && !secret:
		return c.failf(metricsPrefix+"auth.user", "a user needs a password: set %sauth.passwordPath", metricsPrefix)
	case strings.Contains(m.User, ":"):
		return c.failf(metricsPrefix+"auth.user", "basic authentication can't have a user with a colon")
	}
	if (m.User != "" || m.TokenPath != "") && m.HTTPPort != Unset {
		c.warn(metricsPrefix+"httpPort", "", "the credentials for the metrics are readable on the network: set %shttpsPort instead of %[1]shttpPort", metricsPrefix)
	}
	return nil
}

// ports describes the ports of the metrics.
func (m *Metrics) ports() string {
	words := m.HTTPHost
	if m.HTTPPort != Unset {
		words += fmt.Sprintf(" port %d", m.HTTPPort)
	}
	if m.HTTPSPort != Unset {
		words += fmt.Sprintf(" port %d (TLS)", m.HTTPSPort)
	}
	return words
}
