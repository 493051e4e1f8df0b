package conformance

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// Random returns the script for a seed: several sessions that work on few paths
// with few lists and identities, one statement after the other, so that a correct
// server has only one possible reply. The same seed gives the same script.
func Random(seed uint64) (*Script, error) {
	g := &generator{rand: rand.New(rand.NewPCG(seed, 0x5eed))}
	g.script()
	return ParseScript(fmt.Sprint("random-", seed), g.out.String())
}

// statements is the length of a random script.
const statements = 300

type generator struct {
	rand   *rand.Rand
	out    strings.Builder
	marked bool
	alone  bool // don't send several requests at once
}

// Random scripts use these values.
var (
	randomPaths = strings.Fields(`/ /a /a /a /a/x /a/x /a/y /a/x/p /a/x/p/q /b /b /b/z /b/z/w /c /c/d /e1 /e2
		/a/s-0000000002 /b/s-0000000000 /zookeeper /zookeeper/quota /zookeeper/config /none/x /a/ a // /a/../b`)
	randomACLs = strings.Fields(`open open open open [31:world:anyone] [1:world:anyone] [7:world:anyone] [0:world:anyone]
		[31:auth:] [1:world:anyone,31:auth:] [31:digest:bob:ikIaKsbtGweaHnb/jKn7OHqbunM=] [1:ip:127.0.0.0/8,30:auth:]
		[31:digest:alice:V55/p2T0OpjQ+low3NVAH4aLvm0=,17:world:anyone] [] [31:bad:x] [31:world:anyone,31:world:anyone]`)
	randomData     = strings.Fields(`"" null 1 22 data longer-data rep:100:z hex:00ff`)
	randomVersions = strings.Fields(`-1 -1 -1 -1 -1 0 0 1 2 3 -2`)
	randomFlags    = strings.Fields(`0 0 0 0 1 1 2 3 4 5 6 7`)
	randomConns    = strings.Fields(`a a b b c`)
	randomLimits   = strings.Fields(`count=3,bytes=-1 countHardLimit=3 byteHardLimit=30;countHardLimit=6 count=1,bytes=1 byteHardLimit=5`)
)

func (g *generator) pick(list []string) string { return list[g.rand.IntN(len(list))] }

// oneIn returns true once in n times.
func (g *generator) oneIn(n int) bool { return g.rand.IntN(n) == 0 }

func (g *generator) print(format string, args ...any) { fmt.Fprintf(&g.out, format+"\n", args...) }

func (g *generator) path() string { return g.pick(randomPaths) }

func (g *generator) script() {
	g.print("server DigestAuthenticationProvider.superDigest=super:lK75jTNcA+U9vtVEw5vB51mj/w4=")
	for setting, chance := range [...]int{2, 3, 10} {
		if g.oneIn(chance) {
			g.print("server %s", [...]string{"extendedTypesEnabled=true", "enforceQuota=true", "skipACL=yes"}[setting])
			// ZooKeeper checks a quota against counts that lag behind pipelined
			// writes.
			g.alone = g.alone || setting == 1
		}
	}
	for _, c := range []string{"a", "b", "c"} {
		g.print("connect %s", c)
	}
	// Through setWatches ZooKeeper reports znodes that a client must not read, and zkgo
	// does not (differences.txt). We therefore use a client that may read everything.
	g.print("connect w\nw auth digest super:secret")
	for range statements {
		g.statement()
	}
	// Show the final state.
	g.print("connect end")
	g.print("end auth digest super:secret")
	for _, p := range []string{"/", "/a", "/a/x", "/a/y", "/a/x/p", "/b", "/b/z", "/c", "/c/d", "/e1", "/zookeeper/quota", "/zookeeper/quota/a"} {
		g.print("end getData %s\nend getACL %s unordered\nend getChildren2 %s\nend getAllChildrenNumber %s", p, p, p, p)
	}
}

func (g *generator) statement() {
	c := g.pick(randomConns)
	switch n := g.rand.IntN(100); {
	case n < 62:
		g.print("%s %s", c, g.request())
	case n < 72:
		g.multi(c + " multi")
	case n < 75:
		g.multiRead(c)
	case n < 82 && !g.alone:
		g.group(c)
	case n < 86:
		g.setWatches("w")
	case n < 89:
		g.print("%s mark m", c)
		g.marked = true
	case n < 92:
		g.quota(c)
	case n < 95:
		g.print("drain")
	default:
		g.session(c)
	}
}

// group prints requests for one segment, without setACL: ZooKeeper checks a write
// against the old list if a setACL before it has not been applied yet.
func (g *generator) group(c string) {
	g.print("%s {", c)
	for range 2 + g.rand.IntN(6) {
		request := g.request()
		for strings.HasPrefix(request, "setACL") {
			request = g.request()
		}
		g.print("%s", request)
	}
	g.print("}")
}

// session prints a change of a session or connection.
func (g *generator) session(c string) {
	switch g.rand.IntN(6) {
	case 0: // end and replace the session
		g.print("drain\n%s closeSession unordered\ndrain unordered\nconnect %s", c, c)
	case 1: // return over a new connection
		g.print("%s drop\nconnect %s session=%s", c, c, c)
	case 2: // let another connection use the session
		g.print("connect %s session=%s timeout=%d", c, c, 5000+g.rand.IntN(30000))
	case 3: // be refused
		g.print("%s auth bad x\n%s eof\nconnect %s session=%s", c, c, c, c)
	default:
		g.print("%s auth digest %s", c, g.pick([]string{"bob:pw", "bob:pw", "alice:pw", "super:secret", "eve:x"}))
	}
}

// request returns one request that can be used anywhere.
func (g *generator) request() string {
	switch g.rand.IntN(24) {
	case 0, 1, 2, 3, 4:
		return g.create()
	case 5, 6, 7:
		return fmt.Sprintf("delete %s %s", g.path(), g.pick(randomVersions))
	case 8, 9, 10:
		return fmt.Sprintf("setData %s %s %s", g.path(), g.pick(randomData), g.pick(randomVersions))
	case 11:
		return fmt.Sprintf("setACL %s %s %s", g.path(), g.pick(randomACLs), g.pick(randomVersions))
	case 12:
		return fmt.Sprintf("getACL %s unordered", g.path())
	case 13:
		return fmt.Sprintf("addWatch %s %d", g.path(), g.rand.IntN(2))
	case 14:
		return fmt.Sprintf("%s %s %d", g.pick([]string{"checkWatches", "removeWatches"}), g.path(), 1+g.rand.IntN(5))
	case 15:
		return g.pick([]string{"getEphemerals", "getEphemerals /a", "whoAmI", "ping"})
	case 16:
		return fmt.Sprintf("%s %s", g.pick([]string{"sync", "getAllChildrenNumber"}), g.path())
	}
	return fmt.Sprintf("%s %s %d", g.pick([]string{"exists", "getData", "getChildren", "getChildren2"}), g.path(), g.rand.IntN(2))
}

// create returns any create; sequential znodes get a separate prefix.
func (g *generator) create() string {
	op := g.pick([]string{"create", "create", "create2", "create2", "createContainer", "createTTL"})
	flags := g.pick(randomFlags)
	path := g.path()
	switch flags {
	case "2", "3", "6":
		path = g.pick([]string{"/a/s-", "/b/s-", "/s-", "/c/"})
	case "7":
		path = "/a/seven"
	}
	request := fmt.Sprintf("%s %s %s acl=%s flags=%s", op, path, g.pick(randomData), g.pick(randomACLs), flags)
	if op == "createTTL" {
		request += " ttl=100000000"
	}
	return request
}

// multi prints a multi of writes and checks that mostly succeed.
func (g *generator) multi(head string) {
	g.print("%s {", head)
	for range g.rand.IntN(6) {
		switch g.rand.IntN(6) {
		case 0, 1:
			// A flag that no create knows fails the whole request, so it is rare.
			request := g.create()
			for strings.Contains(request, "flags=7") && !g.oneIn(5) {
				request = g.create()
			}
			g.print("%s", request)
		case 2:
			g.print("delete %s", g.path())
		case 3, 4:
			g.print("setData %s %s %s", g.path(), g.pick(randomData), g.pick(randomVersions))
		default:
			g.print("check %s %s", g.path(), g.pick(randomVersions))
		}
	}
	g.print("}")
}

func (g *generator) multiRead(c string) {
	g.print("%s multiRead {", c)
	for range g.rand.IntN(4) {
		g.print("%s %s", g.pick([]string{"getData", "getChildren"}), g.path())
	}
	g.print("}")
}

func (g *generator) setWatches(c string) {
	rel := "0"
	if g.marked {
		rel = "@m"
	}
	list := func() string {
		var paths []string
		for range g.rand.IntN(4) {
			paths = append(paths, g.path())
		}
		return "[" + strings.Join(paths, ",") + "]"
	}
	if g.oneIn(2) {
		g.print("%s setWatches rel=%s data=%s exist=%s child=%s", c, rel, list(), list(), list())
		return
	}
	g.print("%s setWatches2 rel=%s data=%s exist=%s child=%s persistent=%s recursive=%s", c, rel, list(), list(), list(), list(), list())
}

// quota works on the quota of /a or /a/x, and never on one of the root, which
// crashes a real server.
func (g *generator) quota(c string) {
	dir := "/zookeeper/quota" + g.pick([]string{"/a", "/a", "/a/x"})
	switch g.rand.IntN(5) {
	case 0, 1:
		g.print("%s create %s\n%s create %s/zookeeper_limits %s\n%s create %s/zookeeper_stats", c, dir, c, dir, g.pick(randomLimits), c, dir)
	case 2:
		g.print("%s setData %s/zookeeper_limits %s", c, dir, g.pick(randomLimits))
	case 3:
		g.print("%s delete %s/%s", c, dir, g.pick([]string{"zookeeper_limits", "zookeeper_stats"}))
	default:
		g.print("%s getData %s/%s 1", c, dir, g.pick([]string{"zookeeper_limits", "zookeeper_stats"}))
	}
}
