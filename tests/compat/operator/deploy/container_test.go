//go:build linux

package deploy

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/process"
)

// imageUser is the user in the image.
const imageUser = 1000

// image lays out a root directory as the Dockerfile does, with only the binary, its other
// names, and the directories of the image's user.
func image(t *testing.T) string {
	t.Helper()
	rooted(t)
	dir := t.TempDir()
	must.Do(t, os.Link(program(t), filepath.Join(dir, "zkgo")))
	for _, d := range []string{"conf", "data", "datalog", "tmp", "bin"} {
		must.Do(t, os.Mkdir(filepath.Join(dir, d), 0o755))
		must.Do(t, os.Chown(filepath.Join(dir, d), imageUser, imageUser))
	}
	for _, name := range []string{"zkServer.sh", "zkCli.sh"} {
		must.Do(t, os.Symlink("/zkgo", filepath.Join(dir, "bin", name)))
	}
	return dir
}

// inside returns a command that runs in the root directory, as the image's user, with no
// environment but env.
func inside(t *testing.T, dir string, env []string, name string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := command(t, name, args...)
	cmd.Dir, cmd.Env = "/", append([]string{"PATH=/bin"}, env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: dir, Credential: &syscall.Credential{Uid: imageUser, Gid: imageUser}}
	return cmd
}

// TestContainer runs the image's commands, in an empty root directory and not as root: the server
// with the variables of ZooKeeper's image, its health check, and the names of ZooKeeper's scripts.
func TestContainer(t *testing.T) {
	process.Needed(t)
	dir := image(t)
	port := freePort(t)
	env := []string{"ZOO_MY_ID=4", "ZOO_ADMINSERVER_ENABLED=false", "ZOO_4LW_COMMANDS_WHITELIST=srvr,conf",
		fmt.Sprintf("ZOO_SERVERS=server.4=localhost:1:2;127.0.0.1:%d", port), "ZOO_CFG_EXTRA=maxSessionTimeout=77000 snapCount=5000"}
	d := run(t, inside(t, dir, env, "/zkgo", "container"))
	serves(t, local(port))
	if out := output(t, inside(t, dir, env, "/zkgo", "health", "/conf/zoo.cfg")); out != "Mode: standalone\n" {
		t.Errorf("health: %q", out)
	}
	if out := output(t, inside(t, dir, env, "/bin/zkServer.sh", "status")); out != "Mode: standalone\n" {
		t.Errorf("zkServer.sh status: %q", out)
	}
	conf := output(t, inside(t, dir, env, "/zkgo", "health", "--word", "conf", "/conf/zoo.cfg"))
	for _, want := range []string{"maxSessionTimeout=77000\n", "maxClientCnxns=60\n", "tickTime=2000\n", "dataLogDir=/datalog"} {
		if !strings.Contains(conf, want) {
			t.Errorf("conf lacks %q:\n%s", want, conf)
		}
	}
	for path, want := range map[string]uint32{"data/myid": imageUser, "conf/zoo.cfg": imageUser} {
		info := must.Get(os.Stat(filepath.Join(dir, path)))(t)
		if owner := info.Sys().(*syscall.Stat_t).Uid; owner != want {
			t.Errorf("%s belongs to %d", path, owner)
		}
	}
	if err := d.Stop(syscall.SIGTERM); err != nil {
		t.Errorf("after SIGTERM: %v", err)
	}
	if out, err := inside(t, dir, env, "/zkgo", "health", "/conf/zoo.cfg").CombinedOutput(); err == nil {
		t.Errorf("a server that was stopped is healthy: %s", out)
	}
	// Again, as after an update of the image: the same data, and existing files.
	d = run(t, inside(t, dir, env, "/zkgo", "zkServer.sh", "start-foreground"))
	serves(t, local(port))
	if out := d.Output(); !strings.Contains(out, "/conf/zoo.cfg already exists: the ZOO_ variables change nothing") {
		t.Errorf("it does not say that the file decides:\n%s", out)
	}
}

// TestContainerRefusals: the container should report the mistake, and end. It should write no file,
// because existing files would keep the mistake.
func TestContainerRefusals(t *testing.T) {
	process.Needed(t)
	dir := image(t)
	for name, c := range map[string]struct {
		env  []string
		want string
	}{
		"a value":   {[]string{"ZOO_CONF_DIR=/tmp/a", "ZOO_TICK_TIME=soon"}, `/tmp/a/zoo.cfg:3: tickTime: expected an integer of at least 0, got "soon"`},
		"read-only": {[]string{"ZOO_CONF_DIR=/tmp/b", "ZOO_DATA_DIR=/elsewhere"}, "dataDir: this process, which runs as user 1000, cannot write to /"},
		"no id":     {[]string{"ZOO_CONF_DIR=/tmp/c", "ZOO_MY_ID=x"}, "myid"},
		"no member": {[]string{"ZOO_CONF_DIR=/tmp/d", "ZOO_SERVERS=zk1:2888:3888;2181"}, `ZOO_SERVERS: "zk1:2888:3888;2181" is not a server`},
	} {
		out, err := inside(t, dir, c.env, "/zkgo", "container").CombinedOutput()
		if err == nil || !strings.Contains(string(out), c.want) {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
	for _, path := range []string{"data/myid", "tmp/a", "tmp/b", "tmp/c", "tmp/d"} {
		if _, err := os.Stat(filepath.Join(dir, path)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a container that was refused has written %s: %v", path, err)
		}
	}
}

// TestContainerHealth: the command of HEALTHCHECK should query the server that the
// container runs, wherever ZOO_CONF_DIR is, with the settings in the environment, and zkServer.sh
// should accept a file, like ZooKeeper's.
func TestContainerHealth(t *testing.T) {
	process.Needed(t)
	text := must.Get(os.ReadFile(filepath.Join(root, "deploy/container/Dockerfile")))(t)
	if !strings.Contains(string(text), `HEALTHCHECK --interval=10s --timeout=6s --start-period=30s CMD ["/bin/zkServer.sh", "status"]`) {
		t.Fatal("the health check is another command")
	}
	dir := image(t)
	port := freePort(t)
	env := []string{"ZOO_CONF_DIR=/tmp/conf", "ZOO_ADMINSERVER_ENABLED=false", "ZOO_SERVERS=server.1=localhost:1:2",
		fmt.Sprintf("SERVER_JVMFLAGS=-Dzookeeper.clientPort=%d -Dzookeeper.clientPortAddress=127.0.0.1", port)}
	d := run(t, inside(t, dir, env, "/zkgo", "container"))
	serves(t, local(port))
	for _, args := range [][]string{{"status"}, {"status", "zoo.cfg"}, {"--config", "/tmp/conf", "status"}, {"status", "/tmp/conf/zoo.cfg"}} {
		if out := output(t, inside(t, dir, env, "/bin/zkServer.sh", args...)); out != "Mode: standalone\n" {
			t.Errorf("%q: %q", args, out)
		}
	}
	if err := d.Stop(syscall.SIGTERM); err != nil {
		t.Errorf("after SIGTERM: %v", err)
	}
	if out, err := inside(t, dir, env, "/bin/zkServer.sh", "status").CombinedOutput(); err == nil {
		t.Errorf("a server that was stopped is healthy: %s", out)
	}
	// The user's own file, which the server should use although the variables differ from
	// it.
	port = freePort(t)
	write(t, filepath.Join(dir, "tmp/own/zoo.cfg"), "dataDir=/tmp/data", fmt.Sprint("clientPort=", port), "admin.enableServer=false")
	env = []string{"ZOO_CONF_DIR=/nowhere", "ZOO_SERVERS=nonsense"}
	run(t, inside(t, dir, env, "/zkgo", "zkServer.sh", "--config", "/tmp/own", "start-foreground"))
	serves(t, local(port))
}
