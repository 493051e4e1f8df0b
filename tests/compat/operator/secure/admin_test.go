package secure

import (
	"crypto/x509/pkix"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/oracle"
	"github.com/zkgo/zkgo/tests/kit/process"
)

// adminOf starts a zkgo with an AdminServer and returns its address.
func adminOf(t *testing.T, lines ...string) string {
	t.Helper()
	free := must.Get(oracle.FreePorts(1))(t)
	lines = append(lines, "clientPort=0", "clientPortAddress=127.0.0.1", "dataDir="+t.TempDir(),
		"admin.serverAddress=127.0.0.1", fmt.Sprint("admin.serverPort=", free[0]),
		"DigestAuthenticationProvider.superDigest=root:qScoE+LkbrbWBh/au3OD5Aq2Yx0=")
	s := must.Get(process.Run(process.Binary(t), "server", file(t, "zoo.cfg", strings.Join(lines, "\n")+"\n")))(t)
	t.Cleanup(s.Kill)
	return fmt.Sprint("127.0.0.1:", free[0])
}

// curl returns the output of curl and whether curl succeeded.
func curl(t *testing.T, args ...string) (string, bool) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "curl", append([]string{"-sS", "--fail", "--max-time", "60"}, args...)...).CombinedOutput()
	return string(out), err == nil
}

// TestAdminTLS queries the AdminServer with curl, under various TLS settings.
func TestAdminTLS(t *testing.T) {
	need(t, "curl", "openssl")
	t.Parallel()
	c := newCerts(t)
	c.issue("server", pkix.Name{CommonName: "server"}, time.Hour)
	c.issue("alice", pkix.Name{CommonName: "alice"}, time.Hour)
	stores := []string{
		"ssl.quorum.keyStore.location=" + c.path("server.p12"), "ssl.quorum.keyStore.password=" + storePassword,
		"ssl.quorum.trustStore.location=" + c.path("ca.pem"),
	}
	cert := []string{"--cert", c.path("alice.pem"), "--key", c.path("alice.key")}
	for _, tt := range []struct {
		lines                 []string
		plain, anybody, alice bool
	}{
		{nil, true, false, false},
		{append([]string{"admin.portUnification=true"}, stores...), true, true, true},
		{append([]string{"admin.forceHttps=true"}, stores...), false, true, true},
		{append([]string{"admin.forceHttps=true", "admin.needClientAuth=true"}, stores...), false, false, true},
	} {
		addr := adminOf(t, tt.lines...)
		for _, path := range []string{"/commands/ruok", "/commands/srvr", "/livez", "/readyz"} {
			for _, who := range []struct {
				name string
				args []string
				want bool
			}{
				{"http", []string{"http://" + addr + path}, tt.plain},
				{"https", []string{"--cacert", c.path("ca.pem"), "https://" + addr + path}, tt.anybody},
				{"https with a certificate", append(cert, "--cacert", c.path("ca.pem"), "https://"+addr+path), tt.alice},
			} {
				if out, ok := curl(t, who.args...); ok != who.want {
					t.Errorf("%v: %s by %s: answered %v: %s", tt.lines, path, who.name, ok, out)
				}
			}
		}
	}
}

// TestVersionsAndSuites inspects the secure port with openssl.
func TestVersionsAndSuites(t *testing.T) {
	need(t, "openssl")
	t.Parallel()
	c := newCerts(t)
	c.issue("server", pkix.Name{CommonName: "server"}, time.Hour)
	login := file(t, "jaas.conf", jaas)
	for _, tt := range []struct {
		lines []string
		good  []string // arguments of s_client that let it connect
		bad   []string
	}{
		{nil, []string{"-tls1_2", "-tls1_3"}, []string{"-tls1", "-tls1_1"}},
		{[]string{"ssl.enabledProtocols=TLSv1.3"}, []string{"-tls1_3"}, []string{"-tls1_2", "-tls1_1"}},
		{
			[]string{"ssl.protocol=TLSv1.2", "ssl.ciphersuites=TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"},
			[]string{"-tls1_2 -cipher ECDHE-ECDSA-AES256-GCM-SHA384"},
			[]string{"-tls1_3", "-tls1_2 -cipher ECDHE-ECDSA-AES128-GCM-SHA256"},
		},
	} {
		p := zkgo(t, login, append([]string{
			"ssl.keyStore.location=" + c.path("server.p12"), "ssl.keyStore.password=" + storePassword, "ssl.clientAuth=none",
		}, tt.lines...))
		through := func(args string) bool {
			cmd := exec.CommandContext(t.Context(), "openssl", append([]string{"s_client", "-connect", p.secure, "-CAfile", c.path("ca.pem"),
				"-verify_return_error", "-verify_ip", "127.0.0.1", "-brief"}, strings.Fields(args)...)...)
			cmd.Stdin = strings.NewReader("srvr")
			out, _ := cmd.CombinedOutput() // openssl's exit code doesn't say whether it verified
			return strings.Contains(string(out), "Verification: OK")
		}
		for _, args := range tt.good {
			if !through(args) {
				t.Errorf("%v: no connection with %s", tt.lines, args)
			}
		}
		for _, args := range tt.bad {
			if through(args) {
				t.Errorf("%v: a connection with %s", tt.lines, args)
			}
		}
	}
}

// names are the commands with their aliases; snapshot and restore have separate tests.
var names = []string{
	"configuration", "conf", "config", "connections", "cons", "connection_stat_reset", "crst", "dirs", "dump", "environment", "env", "envi",
	"get_trace_mask", "gtmk", "hash", "initial_configuration", "icfg", "is_read_only", "isro", "last_snapshot", "lsnp", "leader", "lead",
	"observers", "obsr", "observer_connection_stat_reset", "orst", "ruok", "server_stats", "srvr", "set_trace_mask", "stmk",
	"set_trace_mask?traceMask=5", "stats", "stat", "stat_reset", "srst", "voting_view", "watches", "wchc", "watches_by_path", "wchp",
	"watch_summary", "wchs", "zabstate", "nix",
}

// TestAdminFields sends every command to both servers and compares the names and types of
// the fields in the replies.
func TestAdminFields(t *testing.T) {
	needOracle(t)
	t.Parallel()
	free := must.Get(oracle.FreePorts(1))(t)
	oracle.Start(t, oracle.Options{Config: []string{"admin.enableServer=true", "admin.serverAddress=127.0.0.1", fmt.Sprint("admin.serverPort=", free[0])}})
	theirs, ours := fmt.Sprint("127.0.0.1:", free[0]), adminOf(t)
	for _, name := range names {
		want, got := fields(t, theirs, name), fields(t, ours, name)
		if !maps.Equal(got, want) {
			t.Errorf("%s:\n%v\nZooKeeper:\n%v", name, sorted(got), sorted(want))
		}
	}
}

func sorted(m map[string]string) []string {
	var list []string
	for k, v := range m {
		list = append(list, k+" "+v)
	}
	slices.Sort(list)
	return list
}

// fields sends a command and returns the type of every field, and the values of the fields
// that every reply has.
func fields(t *testing.T, addr, name string) map[string]string {
	t.Helper()
	req := must.Get(http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr+"/commands/"+name, nil))(t)
	req.SetBasicAuth("root", "pw") // the super user of zkgo; ZooKeeper requires nothing
	resp, err := http.DefaultClient.Do(req)
	must.Do(t, err)
	defer resp.Body.Close()
	var answer map[string]any
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		t.Fatalf("%s of %s: %v", name, addr, err)
	}
	found := map[string]string{"status": resp.Status, "type": resp.Header.Get("Content-Type"),
		"command": fmt.Sprint(answer["command"]), "error": fmt.Sprint(answer["error"])}
	flatten(answer, "", found)
	return found
}

func flatten(v any, path string, into map[string]string) {
	switch v := v.(type) {
	case map[string]any:
		for k, one := range v {
			flatten(one, path+"/"+k, into)
		}
	case []any:
		into[path] = "list"
		for _, one := range v {
			flatten(one, path+"[]", into)
		}
	default:
		into[path] = fmt.Sprintf("%T", v)
	}
}
