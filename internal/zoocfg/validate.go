package zoocfg

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
)

// Validate repeats Parse's checks across keys after Set has changed the
// configuration. It reads the dynamic file, myid, and the client address in the server's own line.
// It may be called any number of times. Its error joins an [Error] for every violated rule. It is a
// [Refused] if there are warnings too.
func (c *Config) Validate() error {
	var errs problems
	c.validate(&errs)
	return c.refused(errs.join())
}

// validate adds the errors of the checks across keys.
func (c *Config) validate(errs *problems) {
	if c.origin == nil {
		errs.add(errBlank)
		return
	}
	for _, check := range []func() error{
		c.checkQuorumAuth, c.checkStorage, c.checkListeners, c.checkTimeouts, c.checkEnforcedAuth, c.checkMetrics,
	} {
		errs.addUnless(check())
	}
	known := !errs.members()
	if known {
		err := c.checkMembership()
		errs.add(err)
		known = err == nil
	}
	if c.DataDir != "" {
		err := c.readMyID()
		errs.add(err)
		known = known && err == nil
	}
	if !known { // this server's id or the membership
		return
	}
	for _, check := range []func() error{c.takeClientAddress, c.takePeerType, c.checkEnsemble} {
		errs.addUnless(check())
	}
	// ZooKeeper starts such a server, too: a voter may have no clients.
	if len(errs.list) == 0 && c.ClientPort == Unset && c.SecureClientPort == Unset {
		c.warn("", "", "no client can connect to this server: neither clientPort nor secureClientPort is set")
	}
}

// failf is fail with a formatted message.
func (c *Config) failf(key, format string, args ...any) error {
	return c.fail(key, fmt.Errorf(format, args...))
}

func (c *Config) checkQuorumAuth() error {
	const enable, server, learner = "quorum.auth.enableSasl", "quorum.auth.serverRequireSasl", "quorum.auth.learnerRequireSasl"
	a := c.QuorumAuth
	switch {
	case !a.EnableSASL && a.ServerRequire:
		return c.failf(server, "%s is disabled, so cannot enable %s", enable, server)
	case !a.EnableSASL && a.LearnerRequire:
		return c.failf(learner, "%s is disabled, so cannot enable %s", enable, learner)
	case !a.LearnerRequire && a.ServerRequire:
		return c.failf(server, "%s is disabled, so cannot enable %s", learner, server)
	}
	return nil
}

func (c *Config) checkStorage() error {
	if c.AutopurgeRetain < minRetain {
		c.warn("autopurge.snapRetainCount", "", "Invalid autopurge.snapRetainCount: %d. Defaulting to %d",
			c.AutopurgeRetain, minRetain)
		c.AutopurgeRetain = minRetain
	}
	if c.DataDir == "" {
		return c.failf("dataDir", "dataDir is not set: expected the directory for snapshots and log")
	}
	return nil
}

func (c *Config) checkListeners() error {
	var errs []error
	if c.ClientPort == Unset && c.ClientPortAddress != "" {
		errs = append(errs, c.failf("clientPortAddress", "clientPortAddress is set but clientPort is not set"))
	}
	if c.SecureClientPort == Unset && c.SecureClientPortAddress != "" {
		errs = append(errs, c.failf("secureClientPortAddress", "secureClientPortAddress is set but secureClientPort is not set"))
	}
	scheme := c.Auth.SSLScheme
	if c.SecureClientPort != Unset && scheme != "x509" && c.Auth.Providers[scheme] == "" {
		errs = append(errs, c.failf("ssl.authProvider", "No auth provider configured for the SSL authentication scheme '%s'.", scheme))
	}
	return errors.Join(errs...)
}

func (c *Config) checkTimeouts() error {
	if c.TickTime == 0 {
		return c.failf("tickTime", "tickTime is not set: expected milliseconds above 0")
	}
	if c.MinSessionTimeout > c.MaxSessionTimeout {
		return c.failf("minSessionTimeout", "minSessionTimeout must not be larger than maxSessionTimeout (%v > %v)",
			c.MinSessionTimeout, c.MaxSessionTimeout)
	}
	return nil
}

func (c *Config) checkEnforcedAuth() error {
	if c.Auth.EnforceEnabled && !c.Auth.RequireClientSASL && len(c.Auth.EnforceSchemes) == 0 {
		return c.failf("enforce.auth.enabled", "is true, but enforce.auth.schemes names no scheme")
	}
	return nil
}

// checkMembership reads the dynamic file, if there is one, and checks the number of
// servers in each role.
func (c *Config) checkMembership() error {
	if c.isSet("dynamicConfigFile") {
		if err := c.readDynamic(); err != nil {
			return err
		}
	}
	var errs problems
	for _, s := range c.Servers {
		if err := s.CheckAddresses(c.MultiAddressEnabled); err != nil {
			errs.add(c.fail("server."+fmt.Sprint(s.ID), err))
		}
	}
	if err := errs.join(); err != nil {
		return err
	}
	if err := c.checkGroups(); err != nil {
		return c.fail("", err)
	}
	c.HierarchicalQuorums = c.hierarchical()
	return c.checkRoles()
}

func (c *Config) checkRoles() error {
	voters := len(c.Voters())
	observers := len(c.Servers) - voters
	switch {
	case voters == 0 && !c.StandaloneEnabled:
		return c.failf("standaloneEnabled", "standaloneEnabled = false then number of participants should be >0")
	case voters == 0 && observers > 0:
		return c.failf("", "Observers w/o participants is an invalid configuration")
	case voters == 0:
	case voters == 1 && c.StandaloneEnabled && observers > 0:
		return c.failf("", "Observers w/o quorum is an invalid configuration")
	case voters == 1 && c.StandaloneEnabled:
		c.warn("", "", "only one server specified: it runs standalone")
	case voters <= 2:
		c.warn("", "", "No server failure will be tolerated. You need at least 3 servers.")
	case voters%2 == 0:
		c.warn("", "", "Non-optimal configuration, consider an odd number of servers.")
	}
	return nil
}

// readMyID reads the id, unless the caller set it. A standalone server needs no myid
// file, but if there is one, it must contain a number.
func (c *Config) readMyID() error {
	if c.HasMyID && c.myIDFrom == "" {
		return c.checkMyID()
	}
	path := filepath.Join(c.DataDir, "myid")
	text, err := c.readFile(path)
	c.MyID, c.HasMyID = 0, false
	if missing(err) {
		return nil
	}
	if err != nil {
		return &Error{File: path, Msg: err.Error(), Err: err}
	}
	first := string(text)
	if end := strings.IndexAny(first, "\r\n"); end >= 0 {
		first = first[:end]
	}
	id, ok := parseLong(first)
	if !ok || id < 0 {
		return &Error{File: path, Line: 1, Msg: "serverid " + visible(first) + " is not a number: expected nothing but digits in the first line" + markHint(first)}
	}
	c.MyID, c.HasMyID, c.myIDFrom = uint64(id), true, path
	return c.checkMyID()
}

// visible quotes a text if it's empty or has invisible characters.
func visible(text string) string {
	if q := strconv.Quote(text); text == "" || q != `"`+text+`"` {
		return q
	}
	return text
}

// markHint returns a hint if a file begins with a byte order mark.
func markHint(text string) string {
	if strings.HasPrefix(text, byteOrderMark) {
		return "; the file begins with a byte order mark, remove it"
	}
	return ""
}

// maxExtendedID reserves the top byte 0xFF, which marks the owners of TTL nodes.
const maxExtendedID = 254

func (c *Config) checkMyID() error {
	if c.ExtendedTypes && c.MyID > maxExtendedID {
		return c.failf("extendedTypesEnabled", "extendedTypesEnabled is true but Server ID is too large. Cannot be larger than %d",
			maxExtendedID)
	}
	return nil
}

// takeClientAddress uses the client address in the server's own line. A different address in the
// static part is an error, as far as that can be determined without resolving names.
func (c *Config) takeClientAddress() error {
	self, ok := c.Self()
	if !ok || self.ClientHost == "" {
		return nil
	}
	if c.isSet("clientPort") && c.ClientPort != Unset {
		static := hostString(c.ClientPortAddress)
		wildcard := anyAddress(c.ClientPortAddress)
		if c.ClientPort != self.ClientPort || !wildcard && !sameHost(static, self.ClientHost) {
			return c.failf("clientPort", "client address for this server (id = %d) in static config file is %s:%d"+
				" is different from client address found in dynamic file: %s:%d",
				c.MyID, c.ClientPortAddress, c.ClientPort, self.ClientHost, self.ClientPort)
		}
	}
	c.ClientPort, c.ClientPortAddress = self.ClientPort, self.ClientHost
	return nil
}

// sameHost compares literals; it assumes that a name may resolve to any literal.
func sameHost(a, b string) bool {
	return strings.EqualFold(a, b) || !isLiteral(a) || !isLiteral(b)
}

func (c *Config) takePeerType() error {
	role := Participant
	if self, ok := c.Self(); ok {
		role = self.Role
	}
	if role != c.PeerType {
		c.warn("peerType", "", "Peer type from servers list (%v) doesn't match peerType (%v). Defaulting to servers list.",
			role, c.PeerType)
		c.PeerType = role
	}
	return nil
}

var errNoMyID = errors.New("myid file is missing")

func (c *Config) checkEnsemble() error {
	if !c.Distributed() {
		return nil
	}
	var errs []error
	if c.InitLimit == 0 {
		errs = append(errs, c.failf("initLimit", "initLimit is not set: an ensemble needs a number of ticks"))
	}
	if c.SyncLimit == 0 {
		errs = append(errs, c.failf("syncLimit", "syncLimit is not set: an ensemble needs a number of ticks"))
	}
	if !c.HasMyID && c.DataDir != "" {
		path := filepath.Join(c.DataDir, "myid")
		errs = append(errs, &Error{File: path, Msg: errNoMyID.Error() + ": expected the number of this server's server.N line", Err: errNoMyID})
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	for key, why := range map[string]string{
		"localSessionsEnabled":                    "every session is global: it may do all that a local one may, and more",
		"localSessionsUpgradingEnabled":           "every session is global from its beginning",
		"multiAddress.reachabilityCheckEnabled":   "an address is checked by dialling it",
		"multiAddress.reachabilityCheckTimeoutMs": "an address is checked by dialling it",
	} {
		if c.isSet(key) {
			c.warn(key, "", "has no effect: %s", why)
		}
	}
	if _, ok := c.Self(); !ok {
		c.warn("", "", "My id %d not in the peer list", c.MyID)
	}
	return nil
}
