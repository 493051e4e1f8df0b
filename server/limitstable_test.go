package server

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/zkgo/zkgo/internal/auth/schemes"
	"github.com/zkgo/zkgo/internal/limits"
	"github.com/zkgo/zkgo/internal/ops/audit"
	"github.com/zkgo/zkgo/internal/ops/httpport"
	"github.com/zkgo/zkgo/internal/ops/stats"
	"github.com/zkgo/zkgo/internal/quorum"
	"github.com/zkgo/zkgo/raftfsm"
	"github.com/zkgo/zkgo/tree"
)

// size formats a number of bytes as the documentation does.
func size(n int) string {
	switch {
	case n >= 1<<30 && n%(1<<30) == 0:
		return fmt.Sprintf("%d GiB", n>>30)
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d bytes", n)
}

// ofCeiling formats a bound that depends on the memory ceiling: its part of the ceiling, and
// its value without a ceiling.
func ofCeiling(t *testing.T, with, without int64) string {
	t.Helper()
	part := int64(1<<40) / with
	if with*part != 1<<40 {
		t.Errorf("%d is not a whole part of the ceiling", with)
	}
	return fmt.Sprintf("1/%d of `memoryCeiling`; without it %s", part, size(int(without)))
}

// limitsTable returns the table of docs/operate/limits.md with the memory limits of a
// client.
func limitsTable(t *testing.T) string {
	def, big := Config{}.withDefaults(), Config{Limits: Limits{MemoryCeiling: 1 << 40}}.withDefaults()
	small := Config{Limits: Limits{MemoryCeiling: 800}}.withDefaults()
	seconds := func(d time.Duration) string { return fmt.Sprintf("%d s", d/time.Second) }
	rows := [][3]string{
		{"identities of a connection, by `addauth`, a certificate or SASL", fmt.Sprintf("%d, and %s together", schemes.MaxIdentities, size(schemes.MaxBytes)), "AuthFailed, and closed"},
		{"identities that go into the log with a write", fmt.Sprintf("%s, else %d bytes for each", size(schemes.MaxCarriedBytes), len(tree.Fingerprint{})),
			"all identities go with a reconfig, and with a write that sets an ACL with the scheme `auth`"},
		{"entries to which the scheme `auth` expands in one ACL", fmt.Sprint(tree.MaxExpanded), "−114 (InvalidACL)"},
		{"the data of a quota's `zookeeper_limits` and `zookeeper_stats`", size(tree.MaxQuotaText), "treated as malformed; −5 (MarshallingError) for changes where quotas are enforced"},
		{"watches of a connection", ofCeiling(t, big.Limits.MaxWatchBytes, def.Limits.MaxWatchBytes), "−125 (QuotaExceeded); a `setWatches` is closed"},
		{"watches of all connections", ofCeiling(t, big.Limits.MaxWatchBytesTotal, def.Limits.MaxWatchBytesTotal), "the largest is closed"},
		{"unread replies and events of a connection", fmt.Sprintf("1/%d of `memoryCeiling`, at most %s", 800/small.Limits.MaxOutput, size(def.Limits.MaxOutput)), "closed. One reply may be of any length"},
		{"unread replies and events of all connections", fmt.Sprintf("1/%d of `memoryCeiling`, at most %s", 800/small.Limits.MaxOutputTotal, size(def.Limits.MaxOutputTotal)), "the largest is closed"},
		{"a reply that its client does not read", fmt.Sprintf("%s in %s, if more than that is queued", size(limits.StallBytes), seconds(limits.StallLimit)), "closed. A client that reads more stays, however slowly"},
		{"the reply to a multiRead", "as the unread replies of a connection", "−5 (MarshallingError)"},
		{"requests of a connection that wait for its writes", fmt.Sprintf("%d, or %s", maxHeldRequests, size(maxHeldBytes)), "the server stops reading from it"},
		{"replies to these", size(maxDue), "the server stops reading from it"},
		{"a request, and so a path, an ACL, a multi, a `setWatches`", fmt.Sprintf("`jute.maxbuffer`, %d bytes", def.Limits.JuteMaxBuffer), "closed"},
		{"all of these while memory is short", fmt.Sprintf("%d %% of `memoryCeiling`", clientPercent), "the largest are closed before writes are refused"},
		{"sessions of one address that have lost their connections here and have not ended", fmt.Sprintf("%d × `maxClientCnxns`; %d if that is 0", limits.LostSessionsPerCnxn, limits.MaxLostSessions), "the address gets no new session"},
		{"sessions of read-only mode", fmt.Sprint(maxLocals), "one without a connection is forgotten"},
		{"answers to commands that list connections, sessions or watches, over all ports", fmt.Sprint(limits.MaxLongAnswers), fmt.Sprintf("the next waits; the oldest is closed after %v", limits.LongAnswerTime)},
		{"connections to a port for HTTP", fmt.Sprint(httpport.MaxConns), "the one that has waited for its client for longest is closed, but no snapshot or restore"},
		{"the body of a request over HTTP other than a restore", seconds(httpport.BodyTimeout), "closed after the answer, which does not wait for the body"},
		{"a connection without a session", seconds(def.Limits.SessionlessTimeout), "closed"},
		{"servers in a `reconfig`, and in any list of servers", fmt.Sprintf("%d, each with %d addresses, hosts of up to %s; %s together", raftfsm.MaxServer+1, raftfsm.MaxServerAddresses, size(raftfsm.MaxHost), size(raftfsm.MaxListBytes)),
			"−8 (BadArguments), or −102 (NoAuth); with such a list, a server doesn't start"},
		{"ServerIDs, of a server id, that call the quorum port without an address of their own", fmt.Sprint(raftfsm.MaxCallers), "the oldest of the server id is forgotten"},
		{"host names of other servers whose addresses are kept", fmt.Sprint(quorum.MaxNames), "another one is forgotten"},
		{"children of the root that are counted separately", fmt.Sprintf("%d, with names of up to %s", stats.MaxNamespaces, size(stats.MaxNamespaceName)), "not counted separately"},
		{"lines of the log about refused clients", fmt.Sprintf("one of a kind in %s, with %s of client input", seconds(limits.ComplaintEvery), size(limits.MaxLogged)), "counted in the next"},
		{"lines of the log about sessions that expire", "100 in 10 s", "counted in the next"},
		{"names of a client in a line of the audit log", size(audit.MaxUserNames), "omitted"},
	}
	var b strings.Builder
	for _, r := range rows {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", r[0], r[1], r[2])
	}
	return b.String()
}

// The documentation should have the same bounds as the code.
func TestLimitsTableMatchesTheCode(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/operate/limits.md")
	if err != nil {
		t.Fatal(err)
	}
	want := limitsTable(t)
	if !strings.Contains(string(text), "|---|---|---|\n"+want+"\n") {
		t.Errorf("docs/operate/limits.md lacks the table:\n%s", want)
	}
}
