package zoocfg

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// Check describes a valid configuration.
type Check struct {
	Summary  []string  `json:"summary"`  // the resulting server, in words
	Settings []Setting `json:"settings"` // settings that were made and have an effect
	Ignored  []Setting `json:"ignored"`  // settings without an effect, with the reason
	Warnings []string  `json:"warnings"`
}

// Check returns a description of c.
func (c *Config) Check() Check {
	k := Check{Summary: c.summary()}
	for _, s := range c.Lines() {
		if s.Verdict == Meaningless || s.Verdict == Missing {
			k.Ignored = append(k.Ignored, s)
		} else {
			k.Settings = append(k.Settings, s)
		}
	}
	for _, w := range c.Warnings {
		k.Warnings = append(k.Warnings, w.String())
	}
	return k
}

// WriteTo prints the description for a human reader.
func (k *Check) WriteTo(w io.Writer) (int64, error) {
	var b strings.Builder
	for _, line := range k.Summary {
		fmt.Fprintln(&b, line)
	}
	part := func(title string, list []Setting) {
		if len(list) == 0 {
			return
		}
		fmt.Fprintf(&b, "\n%s\n", title)
		t := tabwriter.NewWriter(&b, 0, 8, 2, ' ', 0)
		for _, s := range list {
			fmt.Fprintf(t, "  %s\t%s = %s\t%s\n", s.Origin, s.Key, s.Value, s.Words)
		}
		_ = t.Flush() // writes to memory
	}
	part("Settings:", k.Settings)
	part("Settings without effect:", k.Ignored)
	if len(k.Warnings) > 0 {
		fmt.Fprintf(&b, "\nWarnings:\n  %s\n", strings.Join(k.Warnings, "\n  "))
	}
	n, err := io.WriteString(w, b.String())
	return int64(n), err
}

// summary describes a server with this configuration.
func (c *Config) summary() []string {
	lines := []string{c.membershipWords(), c.clientWords(), c.sessionWords(), c.storageWords(), c.operatorWords()}
	if c.Auth.EnforceEnabled || c.Auth.RequireClientSASL {
		lines = append(lines, "Clients must authenticate first.")
	}
	if c.SkipACL {
		lines = append(lines, "No permissions are checked: every client may do everything (skipACL).")
	}
	return lines
}

func (c *Config) membershipWords() string {
	if !c.Distributed() {
		return "A standalone server: there is no other copy of its data."
	}
	voters := len(c.Voters())
	words := fmt.Sprintf("A server of an ensemble of %s", count(voters, "voter"))
	if observers := len(c.Servers) - voters; observers > 0 {
		words += " and " + count(observers, "observer")
	}
	words += fmt.Sprintf("; it needs %d running voters, so it tolerates the loss of %d.", voters/2+1, (voters-1)/2)
	self, ok := c.Self()
	if !ok {
		return words + " This server is not in the list."
	}
	words += fmt.Sprintf(" This one is server %d, %s", self.ID, article(self.Role.String()))
	if c.SSLQuorum {
		return words + "; the servers speak TLS with each other." + c.quorumAuthWords()
	}
	return words + "; the servers speak with each other in plaintext." + c.quorumAuthWords()
}

func (c *Config) quorumAuthWords() string {
	switch a := c.QuorumAuth; {
	case a.ServerRequire:
		return " They authenticate by SASL; servers without SASL are rejected."
	case a.LearnerRequire:
		return " This one uses SASL when it connects to other servers, and accepts servers without SASL."
	case a.EnableSASL:
		return " This one accepts servers with and without SASL, and does not use SASL when it connects to others."
	}
	return ""
}

func (c *Config) clientWords() string {
	at := func(address string, port int) string {
		if anyAddress(address) {
			return fmt.Sprintf("port %d of every address", port)
		}
		return fmt.Sprintf("%s port %d", address, port)
	}
	var ports []string
	if c.ClientPort != Unset {
		how := "without TLS"
		if c.PortUnification {
			how = "with TLS and without"
		}
		ports = append(ports, at(c.ClientPortAddress, c.ClientPort)+" "+how)
	}
	if c.SecureClientPort != Unset {
		ports = append(ports, at(c.SecureClientPortAddress, c.SecureClientPort)+" with TLS")
	}
	if len(ports) == 0 {
		return "No client can connect: neither clientPort nor secureClientPort is set."
	}
	return fmt.Sprintf("Clients connect to %s, at most %s from one address and %s in all.",
		strings.Join(ports, " and "), unlimited(c.MaxClientCnxns), unlimited(c.MaxCnxns))
}

func (c *Config) sessionWords() string {
	words := fmt.Sprintf("Sessions end after %v to %v of silence, as the client asks (a tick is %v).",
		c.MinSessionTimeout, c.MaxSessionTimeout, c.TickTime)
	if c.Distributed() {
		limit := time.Duration(c.SyncLimit) * c.TickTime
		words += fmt.Sprintf(" A server that has no contact with the leader, or lags behind it, for %v (syncLimit ticks) stops serving.", limit)
		// Keep in sync with raftfsm.Patience; a test of the server compares the two.
		limit = max(limit, time.Second)
		words += fmt.Sprintf(" A leader that falls silent is replaced at once if its process is gone, after %v if its machine does not answer, and after %v if only the process is slow.",
			min(limit, 5*time.Second)*2/5, limit*2/5)
	}
	return words
}

func (c *Config) storageWords() string {
	where := fmt.Sprintf("Snapshots and log are in %s", c.DataDir)
	if c.DataLogDir != c.DataDir {
		where = fmt.Sprintf("Snapshots are in %s, the log in %s", c.DataDir, c.DataLogDir)
	}
	return fmt.Sprintf("%s; the server writes a snapshot after about %d transactions and %d are kept. A request has at most %d bytes. Memory ceiling: %s.",
		where, c.SnapCount, c.AutopurgeRetain, c.JuteMaxBuffer, c.MemoryCeiling)
}

func (c *Config) operatorWords() string {
	list := c.FourLetterWhitelist
	if !slices.Contains(list, "srvr") { // always answered
		list = slices.Concat([]string{"srvr"}, list)
	}
	words := fmt.Sprintf("Four-letter words: %s.", strings.Join(list, ", "))
	if c.FourLetterAll() {
		words = "Four-letter words: all."
	}
	if c.Admin.Enable {
		words += fmt.Sprintf(" AdminServer: %s port %d.", c.Admin.Address, c.Admin.Port)
	} else {
		words += " AdminServer: off."
	}
	if c.Metrics.Enabled {
		return words + " Metrics: " + c.Metrics.ports() + "."
	}
	return words + " Metrics: off."
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func article(what string) string {
	if strings.ContainsRune("aeiou", rune(what[0])) {
		return "an " + what
	}
	return "a " + what
}

func unlimited(n int) string {
	if n <= 0 {
		return "any number"
	}
	return fmt.Sprint(n)
}
