package zoocfg

import "strings"

// auditKeys returns ZooKeeper's keys audit.enable and audit.impl.class, and zkgo's
// own keys for the settings that ZooKeeper has in logback.xml.
func auditKeys() []key {
	return []key{
		{name: "audit.enable", set: boolean(func(c *Config) *bool { return &c.Audit.Enable })},
		{name: "audit.impl.class", set: takes(setAuditClass, nil), ignored: true},
		{name: "audit.file", set: text(func(c *Config) *string { return &c.Audit.File })},
		{name: "audit.maxFileSizeInKb", set: propLong(1, func(c *Config) *int64 { return &c.Audit.MaxFileSizeKB })},
		{name: "audit.maxBackups", set: propInt(1, func(c *Config) *int { return &c.Audit.MaxBackups })},
	}
}

// setAuditClass accepts any class, because the records are always in ZooKeeper's
// format.
func setAuditClass(c *Config, class string) error {
	if !strings.HasSuffix(class, ".Slf4jAuditLogger") {
		c.warn("audit.impl.class", "", "the class %s cannot be loaded: audit records go to audit.file, or to the log of the server", class)
	}
	return nil
}
