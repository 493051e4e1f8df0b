package mirror

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zkgo/zkgo/internal/words"
	"github.com/zkgo/zkgo/proto"
)

// Preflight is the input of the checks before a cutover.
type Preflight struct {
	// Old is the ensemble to replace. The checks add the ids and ports that its servers
	// tell.
	Old *Old
	// Mirror is the state of our copy.
	Mirror Status
	// ACLs yields the access control lists of all znodes, e.g. State.ACLs of zkfiles.
	ACLs iter.Seq2[string, []proto.ACL]
	// Zkgo says that the ensemble consists of zkgo servers, or is a single one.
	Zkgo bool
	// Schemes are this server's schemes of access control lists; default the
	// built-in ones.
	Schemes []string
	// Dial connects to the servers. TLS is for client ports that accept only TLS; nil: the system's
	// authorities, and no certificate.
	Dial words.Dial
	TLS  *tls.Config
	// Timeout limits each question; default 3 s.
	Timeout time.Duration
	// MaxLag is the number of transactions that the copy may be behind the leader;
	// default 10,000. They arrive during the pause.
	MaxLag int64
	// MaxSilence limits the time since the leader's last ping; default 10 s.
	MaxSilence time.Duration
}

// Status is how far our copy of the ensemble's state is.
type Status struct {
	// Exact reports whether the copy equals the ensemble's state at Zxid. It is false after a
	// digest that differed.
	Exact bool
	Zxid  int64
	// Proposed is the newest zxid that the leader has proposed, and Heard the time at which
	// it said so.
	Proposed int64
	Heard    time.Time
	Compared int64 // digests that matched
}

// Check asks all servers of the old ensemble, and returns the findings.
func (p *Preflight) Check(ctx context.Context) Findings {
	if p.Timeout <= 0 {
		p.Timeout = 3 * time.Second
	}
	if p.MaxLag <= 0 {
		p.MaxLag = 10_000
	}
	if p.MaxSilence <= 0 {
		p.MaxSilence = 10 * time.Second
	}
	silent := time.Since(p.Mirror.Heard) // now, because asking a server that doesn't answer is slow
	all := p.look(ctx)
	var fs Findings
	for _, v := range all {
		fs.server(v)
	}
	fs.versions(all)
	fs.modes(all, p.Zkgo)
	fs.localSessions(all)
	p.lag(&fs, silent)
	p.digests(&fs, all)
	p.schemes(&fs)
	p.plugins(&fs)
	fs.sort()
	return fs
}

// look asks all servers at once.
func (p *Preflight) look(ctx context.Context) []*seen {
	all := make([]*seen, len(p.Old.Servers))
	var done sync.WaitGroup
	for i := range p.Old.Servers {
		s := &p.Old.Servers[i]
		if s.Client == "" && s.Secure == "" {
			all[i] = &seen{server: s, local: -1, err: errNoClient}
			continue
		}
		done.Go(func() { all[i] = look(ctx, s, asker{dial: p.Dial, limit: p.Timeout, config: p.TLS}) })
	}
	done.Wait()
	return all
}

var errNoClient = errors.New("its client address is unknown")

// server reports whether a server was seen.
func (fs *Findings) server(v *seen) {
	switch {
	case errors.Is(v.err, errNoClient):
		fs.of(v, Blocks, "servers", v.err.Error()+", so it can't be fenced either", "name it with --clients, one address for each server in the order of --from")
	case errors.Is(v.err, words.ErrNotServing):
		fs.of(v, Blocks, "servers", v.err.Error(), "wait until it follows the leader, or stop it")
	case errors.Is(v.err, words.ErrTLS):
		fs.of(v, Warns, "servers", v.err.Error()+", so it can't be asked", "look at its log yourself: it should follow the leader; with sslQuorum, --tls-cert and --tls-ca are used here too")
	case v.err != nil:
		fs.of(v, Blocks, "servers", fmt.Sprintf("it does not answer: %v", v.err),
			"start it, or remove it from the old ensemble's configuration and from --from: clients could write to it when it comes up later")
	case len(v.unlisted) > 0:
		fs.of(v, Warns, "words", fmt.Sprintf("it does not answer %s", strings.Join(v.unlisted, ", ")),
			"add them to 4lw.commands.whitelist in its zoo.cfg and restart it, or accept that the checks that need them are skipped")
	default:
		fs.of(v, OK, "servers", fmt.Sprintf("%s, %s at zxid %#x, connections: %d", v.release(), v.mode, v.zxid, v.connections), "")
	}
}

// The releases that we know, as minor versions of 3.
const (
	oldestMinor = 4
	newestMinor = 9
)

// versions reports releases that we don't know, and mixtures.
func (fs *Findings) versions(all []*seen) {
	known := map[string]bool{}
	for _, v := range all {
		minor := v.minor()
		switch {
		case v.err != nil:
		case v.version == "":
			fs.of(v, Warns, "version", "its version cannot be seen", "check that it is 3.4 to 3.9")
		case minor < oldestMinor || minor > newestMinor:
			fs.of(v, Blocks, "version", fmt.Sprintf("it is %s; this program knows 3.4 to 3.9", v.release()), "use a release of zkgo that knows it")
		default:
			known[v.release()] = true
		}
	}
	if len(known) > 1 {
		fs.add(Warns, "version", "the servers have different versions: "+strings.Join(slices.Sorted(maps.Keys(known)), ", "), "finish the upgrade first")
	}
}

// modes reports whether there is one leader that the others follow.
func (fs *Findings) modes(all []*seen, zkgo bool) {
	if zkgo && len(all) == 1 && all[0].mode == "standalone" {
		return
	}
	leaders, unknown := 0, 0
	for _, v := range all {
		switch {
		case v.err != nil || v.mode == "":
			unknown++
		case v.mode == "leader":
			leaders++
		case v.mode != "follower" && v.mode != "observer":
			fs.of(v, Blocks, "mode", fmt.Sprintf("it is %s, not a member of an ensemble with a leader", v.mode), "check server.N in its zoo.cfg, and its network")
		}
	}
	switch {
	case leaders > 1:
		fs.add(Blocks, "mode", fmt.Sprintf("%d servers say that they lead", leaders), "wait a moment, and check that all belong to the same ensemble")
	case leaders == 0 && unknown == 0:
		fs.add(Blocks, "mode", "no server leads", "wait until the old ensemble has elected a leader")
	}
}

// localSessions reports sessions that only one old server knows.
func (fs *Findings) localSessions(all []*seen) {
	none := true
	for _, v := range all {
		switch {
		case v.err != nil:
			none = false
		case v.local < 0:
			none = false
			fs.of(v, Warns, "local sessions", "cannot see whether it has local sessions", "check that localSessionsEnabled is not set in its zoo.cfg")
		case v.local > 0:
			none = false
			fs.of(v, Warns, "local sessions", fmt.Sprintf("local sessions: %d; they end with this server", v.local),
				"their clients get SESSION_EXPIRED and must open new ones; to keep them, unset localSessionsEnabled and restart the server")
		}
	}
	if none {
		fs.add(OK, "local sessions", "there are none", "")
	}
}

// lag reports how far the copy is behind the leader.
func (p *Preflight) lag(fs *Findings, silent time.Duration) {
	m := &p.Mirror
	const follow = "wait, and see zkgo mirror status"
	switch lag := m.Proposed - m.Zxid; {
	case !m.Exact:
		fs.add(Blocks, "lag", "the copy is not exact yet", follow)
	case m.Heard.IsZero():
		fs.add(Blocks, "lag", "no message from the old leader yet", "check that it runs, and see zkgo mirror status")
	case silent > p.MaxSilence:
		fs.add(Blocks, "lag", "no message from the old leader for "+silent.Round(time.Second).String(), "check that it runs, and see zkgo mirror status")
	case m.Proposed>>32 != m.Zxid>>32 && lag > 0 && m.Proposed&(1<<32-1) != 0:
		fs.add(Blocks, "lag", fmt.Sprintf("the copy is at %#x, the leader in a later epoch at %#x", m.Zxid, m.Proposed), follow)
	case lag > p.MaxLag && m.Proposed>>32 == m.Zxid>>32:
		fs.add(Blocks, "lag", fmt.Sprintf("the copy is %d transactions behind the leader", lag), "wait, or reduce the load on the old ensemble")
	default:
		fs.add(OK, "lag", fmt.Sprintf("the copy is at %#x, the leader at %#x", m.Zxid, max(m.Zxid, m.Proposed)), "")
	}
}

// digests reports whether the old ensemble's digests prove that the copy is exact. A digest
// that differs ends the mirror, so there is no check for that.
func (p *Preflight) digests(fs *Findings, all []*seen) {
	sends := true
	for _, v := range all {
		if minor := v.minor(); minor == 4 || minor == 5 {
			sends = false
		}
		if v.mismatches > 0 {
			fs.of(v, Warns, "digest", fmt.Sprintf("it reports %d digest mismatches: its tree differs from the leader's", v.mismatches),
				"clients of that server may see other data after the cutover; compare it with the leader before")
		}
	}
	switch {
	case p.Mirror.Compared > 0:
		fs.add(OK, "digest", fmt.Sprintf("%d digests of the whole tree matched", p.Mirror.Compared), "")
	case !sends:
		fs.add(Warns, "digest", "ZooKeeper before 3.6 sends no digests, so the copy can't be proved", "compare a few znodes, e.g. with zkgo diff, or upgrade to 3.6 or later first")
	default:
		fs.add(Warns, "digest", "no digest has been compared", "write a znode; if that changes nothing, digest.enabled is false on the old leader")
	}
}

// builtIn are the schemes of access control lists that zkgo has without plug-ins.
var builtIn = []string{"world", "auth", "digest", "ip", "sasl", "x509", "super"}

// plugIns are the plug-ins in a zoo.cfg that zkgo supports.
var plugIns = []string{"Digest", "IP", "SASL", "X509", "Ensemble", "Key"}

// mostPaths limits the examples in a finding.
const mostPaths = 3

// schemes reports access control lists with schemes that zkgo doesn't have.
func (p *Preflight) schemes(fs *Findings) {
	if p.ACLs == nil {
		fs.add(Warns, "ACL schemes", "the access control lists were not checked", "")
		return
	}
	ours, foreign := p.Schemes, map[string][]string{}
	if ours == nil {
		ours = builtIn
	}
	for path, list := range p.ACLs {
		for _, a := range list {
			scheme := a.ID.Scheme
			if paths := foreign[scheme]; !slices.Contains(ours, scheme) && !slices.Contains(paths, path) && len(paths) <= mostPaths {
				foreign[scheme] = append(paths, path)
			}
		}
	}
	for _, scheme := range slices.Sorted(maps.Keys(foreign)) {
		paths := foreign[scheme]
		if len(paths) > mostPaths {
			paths = append(paths[:mostPaths:mostPaths], "…")
		}
		fs.add(Blocks, "ACL schemes", fmt.Sprintf("this server does not have the scheme %q, which is in the lists of %s", scheme, strings.Join(paths, ", ")),
			"configure its authProvider here if zkgo supports it, or change these lists with setACL first: no client could use the permissions that they grant")
	}
	if len(foreign) == 0 {
		fs.add(OK, "ACL schemes", "this server has every scheme", "")
	}
}

// plugins reports authentication plug-ins and other settings in zoo.cfg that zkgo doesn't support.
func (p *Preflight) plugins(fs *Findings) {
	if p.Old.Settings == nil {
		fs.add(Warns, "plug-ins", "authentication plug-ins cannot be seen from outside", "check authProvider.N in the old zoo.cfg and in the JVM's flags, or give the file as --from")
		return
	}
	found := false
	for _, key := range slices.Sorted(maps.Keys(p.Old.Settings)) {
		class := p.Old.Settings[key]
		name, _ := strings.CutSuffix(strings.TrimPrefix(class, "org.apache.zookeeper.server.auth."), "AuthenticationProvider")
		if strings.HasPrefix(key, "authProvider.") && !slices.Contains(plugIns, name) {
			found = true
			fs.add(Warns, "plug-ins", fmt.Sprintf("%s=%s: zkgo does not run it", key, class), "switch clients that use it to another scheme first")
		}
	}
	if !found {
		fs.add(OK, "plug-ins", "the old zoo.cfg names none that zkgo lacks", "")
	}
	if p.Old.is("localSessionsEnabled") {
		fs.add(Warns, "local sessions", "the old zoo.cfg has localSessionsEnabled=true", "sessions that have never created an ephemeral znode may end with the cutover")
	}
}
