package server

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/internal/zoocfg"
)

// TestVerify translates files with valid lines that a server can't start with: every
// command refuses them and says why.
func TestVerify(t *testing.T) {
	t.Parallel()
	const list = "initLimit=5\nsyncLimit=2\nserver.1=a:2888:3888\nserver.2=b:2888:3888\nserver.3=c:2888:3888\n"
	for _, tt := range []struct{ name, myid, lines, want string }{
		{"fine", "1", list, ""},
		{"alone", "", "", ""},
		{"id not listed", "9", list, "server id 9 is not among the servers"},
		{"one address for all", "1", strings.NewReplacer("=a:", "=b:", "=c:", "=b:").Replace(list), "server.1 and server.2 have the same quorum address b:2888"},
		{"one address in two notations", "1", strings.NewReplacer("=a:", "=[::1]:", "=b:", "=[0:0::1]:").Replace(list), "server.1 and server.2 have the same quorum address [::1]:2888"},
		{"not support key store", "", "secureClientPort=2281\nssl.keyStore.location=/nowhere/nosuch.p12\nssl.keyStore.password=x\n", "nosuch.p12"},
		{"no quorum key store", "1", list + "sslQuorum=true\nssl.quorum.trustStore.location=/nowhere/trust.p12\nssl.quorum.keyStore.location=/nowhere/nosuch.p12\nssl.quorum.keyStore.password=x\n", "nosuch.p12"},
		{"quotes", "", "clientPortAddress=\"127.0.0.1\"\n", "is not a host"},
		{"id too large", "1", list + "server.256=d:2888:3888\n", "server id 256 is too large"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if tt.myid != "" {
				if err := os.WriteFile(filepath.Join(dir, "myid"), []byte(tt.myid), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			z, err := zoocfg.ParseText("zoo.cfg", fmt.Sprintf("dataDir=%s\nclientPort=2181\n%s", dir, tt.lines))
			if err == nil {
				_, err = fromZooCfg(z, allFormats())
			}
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want something about %q", err, tt.want)
			}
		})
	}
}

// foreign is an address for documentation, which no machine has.
const foreign = "203.0.113.7"

// TestCheckAddresses expects an error with the setting for each own address of another
// machine, and none for the other servers, for loopback and for wildcards.
func TestCheckAddresses(t *testing.T) {
	t.Parallel()
	if l, err := net.Listen("tcp", net.JoinHostPort(foreign, "0")); err == nil {
		l.Close()
		t.Skip("this machine listens on addresses that it doesn't have")
	}
	const (
		list    = "initLimit=5\nsyncLimit=2\nserver.2=203.0.113.8:2888:3888\nserver.3=203.0.113.9:2888:3888\nserver.1="
		metrics = "metricsProvider.className=org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider\n"
		other   = ": " + foreign + " is not an address of this machine"
		port    = "clientPort=2181\n"
	)
	for _, tt := range []struct {
		name, lines string
		want        []string
	}{
		{"loopback", port + "clientPortAddress=127.0.0.1\n", nil},
		{"wildcards", port + "clientPortAddress=0.0.0.0\n" + list + "0.0.0.0:2888:3888\n", nil},
		{"clients", port + "clientPortAddress=" + foreign + "\n", []string{"clientPortAddress" + other}},
		{"a name", port + "clientPortAddress=nosuch.invalid\n", []string{"clientPortAddress: the name nosuch.invalid does not resolve"}},
		{"operators", port + "admin.serverAddress=" + foreign + "\n" + metrics + "metricsProvider.httpHost=" + foreign + "\n",
			[]string{"admin.serverAddress" + other, "metricsProvider.httpHost" + other}},
		{"servers", port + list + foreign + ":2888:3888\n", []string{"server.1" + other}},
		{"several addresses", port + "multiAddress.enabled=true\n" + list + "127.0.0.1:2888:3888|" + foreign + ":2888:3888\n", []string{"server.1" + other}},
		{"clients in the own line", list + "127.0.0.1:2888:3888;" + foreign + ":2181\n", []string{"server.1 (address for clients)" + other}},
		{"listening elsewhere", port + "quorumListenAddress=" + foreign + "\n" + list + "127.0.0.1:2888:3888\n", []string{"quorumListenAddress" + other}},
		{"listening everywhere", port + "quorumListenOnAllIPs=true\n" + list + foreign + ":2888:3888\n", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			z, err := zoocfg.ParseText("zoo.cfg", "dataDir="+t.TempDir()+"\n"+tt.lines, zoocfg.WithMyID(1))
			if err != nil {
				t.Fatal(err)
			}
			c, err := fromZooCfg(z, allFormats())
			if err != nil {
				t.Fatal(err)
			}
			got := c.CheckAddresses(t.Context())
			if len(got) != len(tt.want) {
				t.Fatalf("%v, want %q", got, tt.want)
			}
			for i, want := range tt.want {
				if !strings.HasPrefix(got[i].Error(), want) {
					t.Errorf("%v, want %q", got[i], want)
				}
			}
		})
	}
	c := Config{SecureAddr: foreign + ":2281"}
	if got := errors.Join(c.CheckAddresses(t.Context())...); got == nil || got.Error() != "secureClientPortAddress"+other {
		t.Error(got)
	}
}
