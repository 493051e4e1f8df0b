package docs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/oracle"
	"github.com/zkgo/zkgo/tests/kit/process"
)

// hosts is the number of hosts that a page may name: zk1, zk2 and so on.
const hosts = 5

// sample is the page with the configuration for pages that show none: the quickstart, which has its
// own test.
const sample = "docs/operate/quickstart.md"

// more is added to every configuration. It is the digest of super:secret.
const more = `reconfigEnabled=true
clientPortAddress=127.0.0.1
DigestAuthenticationProvider.superDigest=super:lK75jTNcA+U9vtVEw5vB51mj/w4=
admin.serverPort=%d
`

// world is where the commands of one page run. Below dir is a directory for each host,
// with its files below etc and var.
type world struct {
	dir, work, binary string
	ports             []int // four for each host: clients, two for other servers, AdminServer; and one for zk9
	config            string
	servers           []*process.Proc
}

func newWorld(t *testing.T, config string) *world {
	t.Helper()
	ports := must.Get(oracle.FreePorts(4*hosts + 1))(t)
	w := &world{dir: t.TempDir(), binary: process.Binary(t), ports: ports, config: config}
	w.work = filepath.Join(w.dir, "work")
	t.Cleanup(w.kill)
	w.write(t, "bin/zkgo", "#!/bin/sh\nexec "+w.binary+" \"$@\"\n")
	w.write(t, "work/.keep", "")
	w.write(t, "backup/.keep", "")
	for host := 1; host <= hosts; host++ {
		w.configure(t, host, "zkgo")
		w.configure(t, host, "zookeeper")
	}
	return w
}

// configure writes a host's configuration below etc/name and makes its data directory
// var/lib/name.
func (w *world) configure(t *testing.T, host int, name string) {
	t.Helper()
	config := regexp.MustCompile(`(?m)^dataDir=.*`).ReplaceAllString(w.config, "dataDir=/var/lib/"+name)
	if host > 3 {
		config += fmt.Sprintf("server.%d=zk%d:2888:3888\n", host, host)
	}
	config = w.on(host, config) + fmt.Sprintf(more, w.ports[4*host-1])
	w.write(t, fmt.Sprintf("zk%d/etc/%s/zoo.cfg", host, name), config)
	w.write(t, fmt.Sprintf("zk%d/var/lib/%s/myid", host, name), fmt.Sprintln(host))
}

// write writes a file below dir.
func (w *world) write(t *testing.T, path, text string) {
	t.Helper()
	path = filepath.Join(w.dir, path)
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = os.WriteFile(path, []byte(text), 0o755) //nolint:gosec // some are programs
	}
	if err != nil {
		t.Fatal(err)
	}
}

// on replaces paths, hosts and ports with the paths, hosts and ports of this world.
func (w *world) on(host int, text string) string {
	own := filepath.Join(w.dir, fmt.Sprintf("zk%d", host))
	pairs := []string{
		" /etc/", " " + own + "/etc/", "@/etc/", "@" + own + "/etc/", "/var/lib/", own + "/var/lib/",
		" /backup/", " " + w.dir + "/backup/", "clientPort=2181", fmt.Sprintf("clientPort=%d", w.ports[4*host-4]),
	}
	for h := 1; h <= hosts; h++ {
		p := w.ports[4*h-4 : 4*h]
		name := fmt.Sprintf("zk%d", h)
		pairs = append(pairs,
			name+":2888:3888;2181", fmt.Sprintf("127.0.0.1:%d:%d;127.0.0.1:%d", p[1], p[2], p[0]),
			name+":2888:3888", fmt.Sprintf("127.0.0.1:%d:%d", p[1], p[2]),
			name+":2181", fmt.Sprintf("127.0.0.1:%d", p[0]),
			name+" 2181", fmt.Sprintf("127.0.0.1 %d", p[0]),
			name+":8080", fmt.Sprintf("127.0.0.1:%d", p[3]))
	}
	last := w.ports[4*hosts]
	pairs = append(pairs, "zk9:2181", fmt.Sprintf("127.0.0.1:%d", last), "localhost:2181", fmt.Sprintf("127.0.0.1:%d", last))
	return strings.NewReplacer(pairs...).Replace(text)
}

// command is a command that runs on a host.
func (w *world) command(ctx context.Context, host int, line string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "bash", "-c", w.on(host, line))
	cmd.WaitDelay = time.Second // children of bash keep its output open
	cmd.Dir = w.work
	cmd.Env = append(os.Environ(), "PATH="+filepath.Join(w.dir, "bin")+":"+os.Getenv("PATH"), "HOME="+w.dir, fmt.Sprint("PORT=", w.ports[4*hosts]), "EDITOR=true", "VISUAL=")
	return cmd
}

// run runs a command on a host and returns its output and its exit code.
func (w *world) run(t *testing.T, host int, line string) (string, int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), process.Patience)
	defer cancel()
	cmd := w.command(ctx, host, "set -o pipefail; "+line)
	var out bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(""), &out, &out
	err := cmd.Run()
	if ctx.Err() != nil {
		t.Fatalf("%s does not end\n%s", line, out.String())
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), cmd.ProcessState.ExitCode()
}

// must runs what prepares for a command of the page.
func (w *world) must(t *testing.T, host int, line string) string {
	t.Helper()
	out, code := w.run(t, host, line)
	if code != 0 {
		t.Fatalf("%s: exit code %d\n%s", line, code, out)
	}
	return out
}

// serve starts a server on some hosts and waits until every server serves.
func (w *world) serve(t *testing.T, line, health string, on ...int) {
	t.Helper()
	for _, host := range on {
		p := must.Get(process.Launch(w.command(context.Background(), host, "exec "+line), ""))(t)
		w.servers = append(w.servers, p)
	}
	for _, host := range on {
		if out, code := w.run(t, host, health); code != 0 {
			t.Fatalf("%s\n%s", out, w.servers[len(w.servers)-1].Tail())
		}
	}
}

// ensemble starts zk1, zk2 and zk3.
func (w *world) ensemble(t *testing.T) {
	t.Helper()
	w.serve(t, "zkgo server /etc/zkgo/zoo.cfg", "zkgo health /etc/zkgo/zoo.cfg --wait 1m", 1, 2, 3)
}

// alone starts a server with the default configuration, localhost or zk9, besides its port.
func (w *world) alone(t *testing.T) {
	t.Helper()
	w.serve(t, "zkgo server --client-port $PORT --set admin.enableServer=false", "zkgo health --server localhost:2181 --wait 1m", 1)
}

// kill ends all servers.
func (w *world) kill() {
	for _, p := range w.servers {
		p.Kill()
	}
	w.servers = nil
}

// stop ends all servers in an orderly way.
func (w *world) stop(t *testing.T) {
	t.Helper()
	for _, p := range w.servers {
		if err := p.Stop(os.Interrupt); err != nil {
			t.Error(err)
		}
	}
	w.servers = nil
}

// until runs a command that doesn't end by itself until it has printed something.
func (w *world) until(t *testing.T, line, text string) {
	t.Helper()
	p := must.Get(process.Launch(w.command(context.Background(), 1, "exec "+line), ""))(t)
	defer p.Kill()
	err := p.Await(process.Patience, "it prints "+text, func() error {
		if !strings.Contains(p.Output(), text) {
			return errors.New("it has not")
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
