package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/tests/kit/must"
)

// starts prepare for the commands of a page.
var starts = map[string]func(*world, *testing.T){
	"docs/operate/backup.md": func(w *world, t *testing.T) {
		w.write(t, "zk1/etc/zkgo/backup-auth", "digest:super:secret\n")
		w.ensemble(t)
	},
	"docs/operate/from-bitnami.md": func(w *world, t *testing.T) {
		w.ensemble(t)
		w.must(t, 1, "zkgo backup --auth digest:super:secret --from http://zk1:8080 zk.zkb")
	},
	"docs/operate/cli.md": func(w *world, t *testing.T) {
		w.ensemble(t)
		w.alone(t)
		w.write(t, "work/script.txt", "create /script x\nls /\n")
		w.write(t, "work/logo.png", "PNG")
		w.write(t, "bin/generate-config", "#!/bin/sh\necho '{}'\n")
		w.must(t, 1, "zkgo cli -server zk1:2181 create -p /app/logo && zkgo cli -server zk1:2181 create /config x")
	},
	"docs/operate/membership.md": (*world).ensemble,
	"docs/operate/monitoring.md": (*world).ensemble,
	"docs/operate/upgrades.md":   (*world).ensemble,
	"docs/operate/recovery.md": func(w *world, t *testing.T) {
		w.serve(t, "zkgo server /etc/zookeeper/zoo.cfg", "zkgo health /etc/zookeeper/zoo.cfg --wait 1m", 1, 2, 3)
		w.kill()
	},
	"docs/operate/migrate.md": func(w *world, t *testing.T) { // what ZooKeeper 3.9.5 wrote
		files := os.DirFS(filepath.Join(root(t), "internal/offline/zkfiles/testdata/3.9.5"))
		must.Do(t, os.CopyFS(filepath.Join(w.dir, "zk1/var/lib/zookeeper"), files))
	},
}

const (
	needsRoot   = "needs root"
	needsDocker = "needs Docker"
	restore     = "curl -X POST -H 'Authorization: digest super:secret' -H 'Content-Type: application/octet-stream' " +
		"--data-binary @zk-2026-11-22.zkb http://zk2:8080/commands/restore"
	mirrored = "tests/compat/operator/takeover runs it with a real ensemble"
	aFailure = "shows what a failure looks like"
)

// steps are keyed by page and command.
var steps = map[string]step{
	"CONTRIBUTING.md: make build": {do: wouldMake("build")},
	"CONTRIBUTING.md: make test":  {do: wouldMake("test")},
	"CONTRIBUTING.md: make help":  {do: wouldMake("help")},

	"README.md: go run ./cmd/zkgo server":      {do: (*world).alone},
	"README.md: go test ./...":                 {why: "it is what runs this"},
	"README.md: zkgo server /etc/zkgo/zoo.cfg": {do: (*world).ensemble},

	"docs/guide/testserver.md: zkgo testserver": {until: `"connectString":"127.0.0.1:`},

	"docs/operate/cli.md: zkgo get -s zk1:2181 -o json /app /config | jq -r .path": {needs: "jq"},
	"docs/operate/cli.md: zkgo cli -server zk1:2181,zk2:2281,zk9:2181 ls /":        {why: aFailure},
	"docs/operate/cli.md: zkgo diff -s zk1:2181 /app zk9:2181/app": {before: func(w *world, t *testing.T) {
		w.must(t, 1, "zkgo cli -server zk1:2181 cp /app zk9:2181/app")
	}},
	"docs/operate/cli.md: zkgo watch -s zk1:2181 --data /app":     {until: "/app"},
	"docs/operate/cli.md: zkgo top -s zk1:2181,zk2:2181,zk3:2181": {until: "3 of 3 servers serving"},

	"docs/operate/backup.md: " + restore: {needs: "curl", do: func(w *world, t *testing.T) {
		if out := w.must(t, 1, "curl -sS -X POST"+strings.TrimPrefix(restore, "curl -X POST")); !strings.Contains(out, `"error" : null`) {
			t.Error(out)
		}
	}},

	"docs/operate/install.md: chown -R zkgo:zkgo /var/lib/zookeeper":                                          {why: needsRoot},
	"docs/operate/install.md: systemctl edit zkgo":                                                            {why: needsRoot},
	"docs/operate/install.md: docker build -f deploy/container/Dockerfile -t zkgo/zkgo:devel .":               {why: needsDocker},
	"docs/operate/install.md: docker run -d -p 2181:2181 -v zk-data:/data -v zk-log:/datalog zkgo/zkgo:0.1.0": {why: needsDocker},
	"docs/operate/install.md: docker load -i zkgo-0.1.0-image.tar":                                            {why: needsDocker},
	"docs/operate/install.md: docker exec <container> zkCli.sh ls /":                                          {why: needsDocker},
	"docs/operate/install.md: docker run --rm zkgo/zkgo:0.1.0 container --print":                              {run: "zkgo container --print"},

	"docs/operate/membership.md: zkgo cli --auth digest:super:secret -server zk1:2181 reconfig -add 'server.4=zk4:2888:3888;2181,server.5=zk5:2888:3888;2181'": {before: func(w *world, t *testing.T) {
		w.serve(t, "zkgo server /etc/zkgo/zoo.cfg", "zkgo health /etc/zkgo/zoo.cfg --live --wait 1m", 4, 5)
	}},
	"docs/operate/membership.md: systemctl stop zkgo": {why: needsRoot},

	"docs/operate/migrate.md: zkgo mirror --from zk1:2888,zk2:2888,zk3:2888 /etc/zkgo/zoo.cfg":                             {why: mirrored},
	"docs/operate/migrate.md: zkgo mirror status /etc/zkgo/zoo.cfg":                                                        {why: mirrored},
	"docs/operate/migrate.md: zkgo mirror --from zk1:2191,zk2:2191,zk3:2191 --serve=read-only /etc/zkgo/zoo.cfg":           {why: mirrored},
	"docs/operate/migrate.md: zkgo mirror cutover --dry-run /etc/zkgo/zoo.cfg":                                             {why: mirrored},
	"docs/operate/migrate.md: zkgo mirror cutover --fence-command 'ssh {host} close-client-port {port}' /etc/zkgo/zoo.cfg": {why: mirrored},
	"docs/operate/migrate.md: zkgo mirror finalize /etc/zkgo/zoo.cfg":                                                      {why: mirrored},
	"docs/operate/migrate.md: zkgo mirror rollback --write-to /var/lib/zookeeper /etc/zkgo/zoo.cfg":                        {why: mirrored},
	"docs/operate/migrate.md: zkgo mirror resume /etc/zkgo/zoo.cfg":                                                        {why: mirrored},
	"docs/operate/migrate.md: zkServer.sh stop":                                                                            {why: "is ZooKeeper's"},
	"docs/operate/migrate.md: zkgo server /etc/zookeeper/zoo.cfg": {do: func(w *world, t *testing.T) {
		w.serve(t, "zkgo server /etc/zookeeper/zoo.cfg", "zkgo health /etc/zookeeper/zoo.cfg --wait 1m", 1)
		if out := w.must(t, 1, "zkgo cli -q -server zk1:2181 get /a"); strings.TrimSpace(out) != "data 11" {
			t.Errorf("imported: %s", out)
		}
	}},
	"docs/operate/migrate.md: zkgo export --to-zookeeper /var/lib/zookeeper /etc/zkgo/zoo.cfg": {before: func(w *world, t *testing.T) {
		w.stop(t)
		w.must(t, 1, "rm -r /var/lib/zkgo && mv /var/lib/zookeeper /var/lib/zkgo && mkdir /var/lib/zookeeper")
	}},

	"docs/operate/monitoring.md: echo mntr | nc zk1 2181 | grep -E 'state|fsynctime|outstanding'": {needs: "nc"},

	"docs/operate/quickstart.md: dpkg -i zkgo_1.2.3_amd64.deb":                                    {why: needsRoot},
	"docs/operate/quickstart.md: editor /etc/zkgo/zoo.cfg":                                        {why: "the world has the file of the page"},
	"docs/operate/quickstart.md: systemctl enable --now zkgo":                                     {do: (*world).ensemble},
	"docs/operate/quickstart.md: systemctl stop zkgo":                                             {why: needsRoot},
	"docs/operate/quickstart.md: systemctl start zkgo && zkgo health /etc/zkgo/zoo.cfg --wait 5m": {run: "zkgo health /etc/zkgo/zoo.cfg --wait 5m"},

	"docs/operate/recovery.md: zkgo recover --yes --rejoin 4332c4d795273a36cecd9bf3695113ab /etc/zookeeper/zoo.cfg": {do: func(w *world, t *testing.T) {
		w.must(t, 2, "zkgo recover --yes --rejoin 4332c4d795273a36cecd9bf3695113ab /etc/zookeeper/zoo.cfg")
	}},

	"docs/operate/upgrades.md: systemctl stop zkgo":          {why: needsRoot},
	"docs/operate/upgrades.md: dpkg -i zkgo_1.3.0_amd64.deb": {why: needsRoot},
	"docs/operate/upgrades.md: systemctl start zkgo":         {why: needsRoot},
	"docs/operate/upgrades.md: zkgo health --server zk1:2181 --word mntr | grep zk_synced_followers": {
		run: "for zk in zk1:2181 zk2:2181 zk3:2181; do zkgo health --server $zk --word mntr; done | grep zk_synced_followers",
	},
}

// wouldMake makes a dry run of a target, because the targets build and test this module.
func wouldMake(target string) func(*world, *testing.T) {
	return func(w *world, t *testing.T) {
		t.Helper()
		if _, err := exec.LookPath("make"); err != nil {
			t.Skip(err)
		}
		w.must(t, 1, "make -n -C "+root(t)+" "+target)
	}
}
