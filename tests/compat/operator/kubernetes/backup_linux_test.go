package kubernetes

import (
	"bytes"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/netns"
	"github.com/zkgo/zkgo/tests/kit/process"
	"github.com/zkgo/zkgo/tests/kit/wait"
)

// chartJob is the pod of a backup.
type chartJob struct {
	Volumes []struct {
		Name   string
		Secret *struct {
			SecretName string
			Items      []struct{ Key, Path string }
		}
	}
	InitContainers, Containers []jobStep
}

// jobStep is a container of a job.
type jobStep struct {
	Name          string
	Image         string
	Command, Args []string
	Env           []struct {
		Name, Value string
		ValueFrom   *struct {
			FieldRef     *struct{ FieldPath string }
			SecretKeyRef *struct{ Name, Key string }
		}
	}
	EnvFrom         []struct{ SecretRef struct{ Name string } }
	VolumeMounts    []struct{ Name, MountPath string }
	SecurityContext struct{ RunAsUser, RunAsGroup int }
}

// jobs runs backups like Kubernetes: one container after the other, until one fails.
type jobs struct {
	*cluster
	pod     chartJob
	host    *netns.Host
	secrets map[string]map[string]string
	claim   string // a directory that outlives the pods
	scratch string // of the newest pod
	after   map[string]func()
}

func newJobs(c *cluster, recorded string) *jobs {
	c.t.Helper()
	j := &jobs{cluster: c, host: must.Get(c.net.Host("job"))(c.t), claim: filepath.Join(c.dir, "claim"), after: map[string]func(){},
		secrets: map[string]map[string]string{voterSet + "-super": {"super-password": "secret"}}}
	read(c.t, recorded, &j.pod)
	if c.issuer != nil {
		j.secrets[voterSet+"-quorum-crt"] = map[string]string{"ca.crt": string(c.issuer.pem())}
	}
	c.own(c.dir, "claim")
	return j
}

// run runs a pod, and returns the containers that succeeded and the last one's output.
func (j *jobs) run(name string) (done []string, output string) {
	j.t.Helper()
	root := filepath.Join(j.dir, name)
	for _, dir := range []string{"bin", "etc"} {
		must.Do(j.t, os.MkdirAll(filepath.Join(root, dir), 0o755))
	}
	must.Do(j.t, os.WriteFile(filepath.Join(root, "etc/resolv.conf"), []byte("nameserver "+j.api+"\noptions timeout:1\n"), 0o644))
	must.Do(j.t, os.Link(program(j.t), filepath.Join(root, "zkgo")))
	for _, v := range j.pod.Volumes {
		j.own(root, v.Name)
		if v.Secret == nil {
			continue
		}
		for _, i := range v.Secret.Items {
			must.Do(j.t, os.WriteFile(filepath.Join(root, v.Name, i.Path), []byte(j.secret(v.Secret.SecretName)[i.Key]), 0o644))
		}
	}
	j.scratch = filepath.Join(root, "scratch")
	for _, step := range slices.Concat(j.pod.InitContainers, j.pod.Containers) {
		env := j.env(step, name)
		expand := func(text string) string {
			for key, value := range env {
				text = strings.ReplaceAll(text, "$("+key+")", value)
			}
			return text
		}
		command := step.Command
		if len(command) == 0 {
			command = []string{"/zkgo"}
		} else {
			_ = os.Link(rclone(j.t), filepath.Join(root, "bin/rclone"))
		}
		// The root directory is another user's, as if it were read only.
		script := `mount --make-rprivate / && [ ! -d "$1/backup" ] || mount --bind "$2" "$1/backup"; shift 2
			exec env -i PATH=/bin "$@"`
		args := []string{"-m", "sh", "-c", script, "sh", root, j.claim}
		for _, key := range slices.Sorted(maps.Keys(env)) {
			args = append(args, key+"="+expand(env[key]))
		}
		args = append(args, "/usr/sbin/chroot", fmt.Sprintf("--userspec=%d:%d", step.SecurityContext.RunAsUser, step.SecurityContext.RunAsGroup), root)
		args = append(args, command...)
		for _, a := range step.Args {
			args = append(args, expand(a))
		}
		proc, err := process.LaunchIn(func() (bool, error) { return true, j.host.Enter() }, exec.Command("unshare", args...), "")
		if err != nil {
			j.t.Fatal(err)
		}
		state, err := proc.Exit(process.Patience)
		output = proc.Output()
		if err != nil {
			proc.Kill()
			j.t.Fatalf("%s: %v\n%s", step.Name, err, output)
		}
		if !state.Success() {
			return done, output
		}
		done = append(done, step.Name)
		if f := j.after[step.Name]; f != nil {
			f()
		}
	}
	return done, output
}

// env returns the variables of a container.
func (j *jobs) env(step jobStep, pod string) map[string]string {
	j.t.Helper()
	env := map[string]string{}
	for _, from := range step.EnvFrom {
		maps.Copy(env, j.secret(from.SecretRef.Name))
	}
	for _, e := range step.Env {
		switch {
		case e.ValueFrom == nil:
			env[e.Name] = e.Value
		case e.ValueFrom.SecretKeyRef != nil:
			env[e.Name] = j.secret(e.ValueFrom.SecretKeyRef.Name)[e.ValueFrom.SecretKeyRef.Key]
		case e.ValueFrom.FieldRef.FieldPath == "metadata.name":
			env[e.Name] = pod
		default:
			j.t.Fatalf("%s: where does %s come from?", step.Name, e.Name)
		}
	}
	return env
}

func (j *jobs) secret(name string) map[string]string {
	j.t.Helper()
	s, ok := j.secrets[name]
	if !ok {
		j.t.Fatalf("there is no Secret %s", name)
	}
	return s
}

// damage changes a byte in the middle of a file.
func damage(t *testing.T, path string) {
	t.Helper()
	b := must.Get(os.ReadFile(path))(t)
	b[len(b)/2] ^= 1
	must.Do(t, os.WriteFile(path, b, 0o600))
}

// backups returns the names of the files in a directory.
func backups(t *testing.T, dir string) (names []string) {
	t.Helper()
	for _, f := range must.Get(os.ReadDir(dir))(t) {
		names = append(names, f.Name())
	}
	return names
}

// same checks that the restored directory of the newest pod equals a backup.
func (j *jobs) same(backup string) {
	j.t.Helper()
	out, err := exec.Command(program(j.t), "inspect", "diff", backup, filepath.Join(j.scratch, "restored")).CombinedOutput()
	if err != nil || strings.Contains(string(out), "/kept") {
		j.t.Errorf("the backup and what was restored differ: %v\n%s", err, out)
	}
	out, err = exec.Command(program(j.t), "inspect", "snapshot", "--depth", "1", filepath.Join(j.scratch, "restored")).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "/kept") {
		j.t.Errorf("what was restored: %v\n%s", err, out)
	}
}

// serving returns a cluster of three servers with a znode.
func serving(t *testing.T, recorded string) *cluster {
	t.Helper()
	c := newCluster(t, recorded)
	c.scale(voterSet, 3)
	c.start(false, pods(3)...)
	c.ready(pods(3)...)
	z := c.connect(pods(3)...)
	must.Get(z.Create(t.Context(), "/kept", bytes.Repeat([]byte("data "), 10_000)))(t)
	return c
}

// TestBackupToClaim runs the backups of servers with TLS for clients, where only a client with
// a certificate gets in. Their AdminServers have TLS, too.
func TestBackupToClaim(t *testing.T) {
	t.Parallel()
	c := serving(t, "certmanager")
	j := newJobs(c, "backup")
	all := []string{"take", "restore", "publish"}
	for i := range 6 {
		done, out := j.run(fmt.Sprint("backup-", i))
		if !slices.Equal(done, all) {
			t.Fatalf("backup %d ends after %q:\n%s", i, done, out)
		}
		j.same(filepath.Join(j.claim, fmt.Sprintf("backup-%d.zkb", i)))
	}
	kept := backups(t, j.claim)
	if want := []string{"backup-1.zkb", "backup-2.zkb", "backup-3.zkb", "backup-4.zkb", "backup-5.zkb"}; !slices.Equal(kept, want) {
		t.Errorf("the claim has %q, not %q", kept, want)
	}

	// Damaged backups fail, keep a name that tells, and cost no older one. They don't fill the
	// claim either.
	for i := range 5 {
		name := fmt.Sprint("damaged-", i)
		j.after["take"] = func() { damage(t, filepath.Join(j.claim, name+".unverified")) }
		if done, out := j.run(name); !slices.Equal(done, []string{"take"}) || !strings.Contains(out, name+".unverified") {
			t.Errorf("a damaged backup ends after %q:\n%s", done, out)
		}
	}
	delete(j.after, "take")
	damaged := []string{"damaged-2.unverified", "damaged-3.unverified", "damaged-4.unverified"}
	if got := backups(t, j.claim); !slices.Equal(got, append(kept, damaged...)) {
		t.Errorf("after damaged backups, the claim has %q", got)
	}
	// One that is damaged after the restore doesn't get its name.
	j.after["restore"] = func() { damage(t, filepath.Join(j.claim, "late.unverified")) }
	if done, out := j.run("late"); !slices.Equal(done, []string{"take", "restore"}) {
		t.Errorf("a backup that is damaged late ends after %q:\n%s", done, out)
	}
	delete(j.after, "restore")
	if got := backups(t, j.claim); !slices.Equal(got[:5], kept) {
		t.Errorf("after a backup that was damaged late, the claim has %q", got)
	}
	if done, out := j.run("good"); !slices.Equal(done, all) {
		t.Errorf("after damaged backups, one ends after %q:\n%s", done, out)
	}
	var good []string
	for _, name := range backups(t, j.claim) {
		if strings.HasSuffix(name, ".zkb") {
			good = append(good, name)
		}
	}
	if want := append(slices.Clone(kept[1:]), "good.zkb"); !slices.Equal(good, want) {
		t.Errorf("after damaged backups and a good one, the claim has %q", good)
	}

	// One server is enough.
	c.stop("zk-zookeeper-0")
	if done, out := j.run("first-away"); !slices.Equal(done, all) {
		t.Errorf("without the first server, the backup ends after %q:\n%s", done, out)
	}
	j.secrets[voterSet+"-super"]["super-password"] = "wrong"
	if done, out := j.run("wrong"); len(done) > 0 || !strings.Contains(out, "Not authorized") {
		t.Errorf("with a wrong password, the backup ends after %q:\n%s", done, out)
	}

	// The password goes to no server with the certificate of another authority, and not without TLS.
	j.secrets[voterSet+"-super"]["super-password"] = "secret"
	j.secrets[voterSet+"-quorum-crt"]["ca.crt"] = string(newAuthority(t).pem())
	if done, out := j.run("stranger"); len(done) > 0 || !strings.Contains(out, "certificate") {
		t.Errorf("from servers that it doesn't trust, the backup ends after %q:\n%s", done, out)
	}
	j.secrets[voterSet+"-quorum-crt"]["ca.crt"] = string(c.issuer.pem())
	take := j.pod.InitContainers[0].Args
	for i, arg := range take {
		take[i] = strings.Replace(arg, "--from=https:", "--from=http:", 1)
	}
	if done, out := j.run("plaintext"); len(done) > 0 || !strings.Contains(out, "TLS") {
		t.Errorf("without TLS, the backup ends after %q:\n%s", done, out)
	}
}

// TestBackupToS3 stores backups with rclone.
func TestBackupToS3(t *testing.T) {
	t.Parallel()
	if os.Getenv("ZKGO_REQUIRE") != "1" {
		t.Skip("builds rclone (set ZKGO_REQUIRE=1)")
	}
	c := serving(t, "pod")
	j := newJobs(c, "s3")
	if _, version, _ := strings.Cut(j.pod.InitContainers[1].Image, ":"); !strings.Contains(string(must.Get(os.ReadFile("rclone/go.mod"))(t)), "rclone v"+version+".") {
		t.Errorf("the chart has rclone %s, and the module rclone another one", version)
	}
	j.secrets["minio"] = map[string]string{"AWS_ACCESS_KEY_ID": "backup", "AWS_SECRET_ACCESS_KEY": "backup-secret"}
	store := filepath.Join(c.dir, "store")
	must.Do(t, os.MkdirAll(filepath.Join(store, "zk"), 0o755)) // the bucket
	host := must.Get(c.net.Host("minio"))(t)
	c.dns.set("minio", netip.MustParseAddr(host.Addr().String()))
	server := must.Get(process.LaunchIn(func() (bool, error) { return true, host.Enter() },
		exec.Command(rclone(t), "serve", "s3", "--addr", host.Addr().String()+":9000", "--auth-key", "backup,backup-secret", "--vfs-cache-mode", "off", "--dir-cache-time", "1ms", store), ""))(t)
	t.Cleanup(server.Kill)
	wait.Eventually(t, "the store listens", func() bool {
		conn, err := host.Dial(t.Context(), host.Addr().String()+":9000")
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})

	all := []string{"take", "store", "fetch", "restore", "publish"}
	if done, out := j.run("good"); !slices.Equal(done, all) {
		t.Fatalf("the backup ends after %q:\n%s\nthe store:\n%s", done, out, server.Output())
	}
	stored := filepath.Join(store, "zk/prod/zk")
	if got := backups(t, stored); !slices.Equal(got, []string{"good.zkb"}) {
		t.Errorf("the store has %q", got)
	}
	j.same(filepath.Join(stored, "good.zkb"))

	// The store loses a bit, or the object.
	for name, harm := range map[string]func(path string){
		"damaged": func(path string) { damage(t, path) },
		"lost":    func(path string) { must.Do(t, os.Remove(path)) },
	} {
		j.after["store"] = func() { harm(filepath.Join(stored, name+".unverified")) }
		if done, out := j.run(name); !slices.Contains(done, "store") || slices.Contains(done, "restore") {
			t.Errorf("a %s backup ends after %q:\n%s", name, done, out)
		}
	}
	delete(j.after, "store")
	if got := backups(t, stored); !slices.Equal(got, []string{"damaged.unverified", "good.zkb"}) {
		t.Errorf("after a damaged and a lost backup, the store has %q", got)
	}
	j.secrets["minio"]["AWS_SECRET_ACCESS_KEY"] = "wrong"
	if done, out := j.run("wrong"); !slices.Equal(done, []string{"take"}) {
		t.Errorf("with a wrong key, the backup ends after %q:\n%s", done, out)
	}
}
