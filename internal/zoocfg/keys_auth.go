package zoocfg

import (
	"strings"
	"time"
)

func authKeys() []key {
	return []key{
		{name: "DigestAuthenticationProvider.superDigest", set: text(func(c *Config) *string { return &c.Auth.SuperDigest })},
		{name: "DigestAuthenticationProvider.enabled", set: boolean(func(c *Config) *bool { return &c.Auth.DigestEnabled })},
		{name: "DigestAuthenticationProvider.digestAlg", set: oneOf(func(c *Config) *string { return &c.Auth.DigestAlg },
			"SHA1", "SHA-1", "SHA", "SHA-224", "SHA-256", "SHA-384", "SHA-512", "SHA-512/224", "SHA-512/256",
			"SHA3-224", "SHA3-256", "SHA3-384", "SHA3-512", "MD5")},
		{name: "X509AuthenticationProvider.superUser", set: text(func(c *Config) *string { return &c.Auth.X509SuperUser })},
		{name: "superUser", set: text(func(c *Config) *string { return &c.Auth.SASLSuperUser })},
		{name: "SASLAuthenticationProvider.superPassword", set: text(func(c *Config) *string { return &c.Auth.SASLSuperPassword })},
		{name: "ensembleAuthName", set: list(func(c *Config) *[]string { return &c.Auth.EnsembleNames })},
		{name: "java.security.auth.login.config", set: text(func(c *Config) *string { return &c.Auth.JAASFile })},
		{name: "sasl.serverconfig", set: text(func(c *Config) *string { return &c.Auth.SASLServerContext })},
		{name: "allowSaslFailedClients", set: boolean(func(c *Config) *bool { return &c.Auth.AllowSASLFailed })},
		{name: "sessionRequireClientSASLAuth", set: boolean(func(c *Config) *bool { return &c.Auth.RequireClientSASL })},
		{name: "enforce.auth.enabled", set: boolean(func(c *Config) *bool { return &c.Auth.EnforceEnabled })},
		{name: "enforce.auth.schemes", set: list(func(c *Config) *[]string { return &c.Auth.EnforceSchemes })},
		{name: "kerberos.removeHostFromPrincipal", set: boolean(func(c *Config) *bool { return &c.Auth.RemoveHost })},
		{name: "kerberos.removeRealmFromPrincipal", set: boolean(func(c *Config) *bool { return &c.Auth.RemoveRealm })},
		{name: "ssl.authProvider", set: text(func(c *Config) *string { return &c.Auth.SSLScheme })},
	}
}

func quorumAuthKeys() []key {
	return []key{
		{name: "quorum.auth.enableSasl", set: boolean(func(c *Config) *bool { return &c.QuorumAuth.EnableSASL })},
		{name: "quorum.auth.serverRequireSasl", set: boolean(func(c *Config) *bool { return &c.QuorumAuth.ServerRequire })},
		{name: "quorum.auth.learnerRequireSasl", set: boolean(func(c *Config) *bool { return &c.QuorumAuth.LearnerRequire })},
		{name: "quorum.auth.server.saslLoginContext", set: text(func(c *Config) *string { return &c.QuorumAuth.ServerContext })},
		{name: "quorum.auth.learner.saslLoginContext", set: text(func(c *Config) *string { return &c.QuorumAuth.LearnerContext })},
		{name: "quorum.auth.kerberos.servicePrincipal", set: text(func(c *Config) *string { return &c.QuorumAuth.ServicePrincipal })},
	}
}

// tlsKeys returns the keys of one of the two TLS sets.
func tlsKeys(prefix string, set func(*Config) *TLS) []key {
	str := func(name string, f func(*TLS) *string) key {
		return key{name: prefix + name, set: text(func(c *Config) *string { return f(set(c)) })}
	}
	flag := func(name string, f func(*TLS) *bool) key {
		return key{name: prefix + name, set: boolean(func(c *Config) *bool { return f(set(c)) })}
	}
	lst := func(name string, f func(*TLS) *[]string) key {
		return key{name: prefix + name, set: list(func(c *Config) *[]string { return f(set(c)) })}
	}
	all := []key{
		str("protocol", func(t *TLS) *string { return &t.Protocol }),
		lst("enabledProtocols", func(t *TLS) *[]string { return &t.EnabledProtocols }),
		lst("ciphersuites", func(t *TLS) *[]string { return &t.CipherSuites }),
		{name: prefix + "clientAuth", set: oneOf(func(c *Config) *string { return &set(c).ClientAuth }, "none", "want", "need")},
		flag("hostnameVerification", func(t *TLS) *bool { return &t.HostnameVerification }),
		flag("clientHostnameVerification", func(t *TLS) *bool { return &t.ClientHostnameVerification }),
		flag("allowReverseDnsLookup", func(t *TLS) *bool { return &t.AllowReverseDNSLookup }),
		flag("crl", func(t *TLS) *bool { return &t.CRL }),
		flag("ocsp", func(t *TLS) *bool { return &t.OCSP }),
		{name: prefix + "handshakeDetectionTimeoutMillis", set: insteadBelow(prefix+"handshakeDetectionTimeoutMillis", 1, "5000", propMillis(1,
			func(c *Config) *time.Duration { return &set(c).HandshakeDetectionTimeout }))},
	}
	if prefix == "ssl." {
		all = append(all, key{name: "client.certReload", set: boolean(func(c *Config) *bool { return &c.TLS.CertReload })})
	}
	all = append(all, storeKeys(prefix+"keyStore.", func(c *Config) *Store { return &set(c).KeyStore })...)
	return append(all, storeKeys(prefix+"trustStore.", func(c *Config) *Store { return &set(c).TrustStore })...)
}

func storeKeys(prefix string, store func(*Config) *Store) []key {
	return []key{
		{name: prefix + "location", set: text(func(c *Config) *string { return &store(c).Location })},
		{name: prefix + "password", set: text(func(c *Config) *string { return &store(c).Password })},
		{name: prefix + "passwordPath", set: text(func(c *Config) *string { return &store(c).PasswordPath })},
		{name: prefix + "type", set: oneOf(func(c *Config) *string { return &store(c).Type }, "JKS", "PEM", "PKCS12", "BCFKS", "")},
	}
}

const authProviderPrefix = "authProvider."

// setAuthProvider records a provider class. We support only what ZooKeeper's own classes
// do, so clients that depend on another class can't authenticate.
func (c *Config) setAuthProvider(name, class string) {
	if c.Auth.Providers == nil {
		c.Auth.Providers = map[string]string{}
	}
	c.Auth.Providers[strings.TrimPrefix(name, authProviderPrefix)] = class
	const pkg = "org.apache.zookeeper.server.auth."
	switch strings.TrimPrefix(class, pkg) {
	case "DigestAuthenticationProvider", "IPAuthenticationProvider", "SASLAuthenticationProvider",
		"X509AuthenticationProvider", "EnsembleAuthenticationProvider", "KeyAuthenticationProvider":
	default:
		c.warn(name, "", "the class %s cannot be loaded: clients that use it will be refused", class)
	}
}
