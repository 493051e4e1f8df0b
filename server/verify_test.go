package server

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/server/zoocfg"
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
		{"no key store", "", "secureClientPort=2281\nssl.keyStore.location=/nowhere/nosuch.p12\nssl.keyStore.password=x\n", "nosuch.p12"},
		{"no quorum key store", "1", list + "sslQuorum=true\nssl.quorum.trustStore.location=/nowhere/trust.p12\nssl.quorum.keyStore.location=/nowhere/nosuch.p12\nssl.quorum.keyStore.password=x\n", "nosuch.p12"},
		{"quotes", "", "clientPortAddress=\"127.0.0.1\"\n", "is no host"},
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
				_, err = FromZooCfg(z)
			}
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want something about %q", err, tt.want)
			}
		})
	}
}
