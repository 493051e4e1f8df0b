package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/wait"
)

const chart = "../../../../../deploy/helm/zookeeper"

// patience bounds a wait for pods.
const patience = 5 * time.Minute

// small makes many pods fit on one node.
var small = []string{"--set", "resources.requests.cpu=20m,resources.requests.memory=64Mi,minReadySeconds=1"}

// namespace is a namespace with one release, zk.
type namespace struct {
	t    *testing.T
	name string
}

// newNamespace makes a namespace that the test deletes.
func newNamespace(t *testing.T, name string) *namespace {
	t.Helper()
	if os.Getenv("ZKGO_KUBERNETES") != "1" {
		t.Skip("needs a Kubernetes (set ZKGO_KUBERNETES=1 and KUBECONFIG, see cluster.sh)")
	}
	n := &namespace{t, fmt.Sprintf("%s-%d", name, time.Now().Unix()%1000000)}
	must.Get(tool("kubectl", "create", "namespace", n.name))(t)
	t.Cleanup(func() {
		if t.Failed() {
			for _, args := range [][]string{{"get", "all,pvc"}, {"get", "events", "--sort-by=.lastTimestamp"}, {"logs", "-l", "app.kubernetes.io/instance=zk", "--prefix", "--tail=60"}} {
				out, _ := tool("kubectl", append([]string{"-n", n.name}, args...)...)
				t.Log(out)
			}
		}
		if os.Getenv("KEEP") == "" {
			if _, err := tool("kubectl", "delete", "namespace", n.name); err != nil {
				t.Error(err)
			}
		}
	})
	return n
}

// tool runs kubectl or helm.
func tool(name string, args ...string) (string, error) {
	return with("", name, args...)
}

// with runs a program with an input.
func with(input, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Stdin = strings.NewReader(input)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, stderr.String())
	}
	return string(out), err
}

// kubectl runs kubectl in the namespace.
func (n *namespace) kubectl(args ...string) string {
	n.t.Helper()
	return must.Get(tool("kubectl", append([]string{"-n", n.name}, args...)...))(n.t)
}

// apply makes an object.
func (n *namespace) apply(yaml string) {
	n.t.Helper()
	must.Get(with(yaml, "kubectl", "-n", n.name, "apply", "-f", "-"))(n.t)
}

// helm installs or upgrades the release with values.
func (n *namespace) helm(values string, args ...string) {
	n.t.Helper()
	file := filepath.Join(n.t.TempDir(), "values.yaml")
	must.Do(n.t, os.WriteFile(file, []byte(values), 0o600))
	must.Get(tool("helm", slices.Concat([]string{"-n", n.name, "upgrade", "--install", "zk", chart, "-f", file}, args)...))(n.t)
}

// field reads a field of an object.
func (n *namespace) field(object, path string) string {
	out, err := tool("kubectl", "-n", n.name, "get", object, "-o", "jsonpath={"+path+"}", "--ignore-not-found")
	if err != nil {
		n.t.Error(err)
	}
	return out
}

// await waits until all pods of a StatefulSet have its newest template, and are ready.
func (n *namespace) await(set string, replicas int) {
	n.t.Helper()
	must.Do(n.t, wait.Success(patience, fmt.Sprintf("%d pods of %s are ready and up to date", replicas, set), func() error {
		<-time.After(200 * time.Millisecond) // kubectl is not cheap
		var s struct {
			Metadata struct{ Generation int }
			Spec     struct{ Replicas int }
			Status   struct {
				ObservedGeneration, Replicas, ReadyReplicas, AvailableReplicas, UpdatedReplicas int
				CurrentRevision, UpdateRevision                                                 string
			}
		}
		out, err := tool("kubectl", "-n", n.name, "get", "statefulset", set, "-o", "json")
		if err != nil {
			return err
		}
		if err := json.Unmarshal([]byte(out), &s); err != nil {
			return err
		}
		st := s.Status
		if st.ObservedGeneration != s.Metadata.Generation || st.Replicas != replicas || st.AvailableReplicas != replicas || replicas > 0 && st.CurrentRevision != st.UpdateRevision {
			return fmt.Errorf("%+v", st)
		}
		return nil
	}))
}

// address returns the address of a service's port.
func (n *namespace) address(service, port string) string {
	return n.field("service/"+service, ".spec.clusterIP") + ":" + n.field("service/"+service, `.spec.ports[?(@.name=="`+port+`")].port`)
}

// connect connects a client to the service.
func (n *namespace) connect(opts ...client.Option) *client.Client {
	n.t.Helper()
	return n.connectTo(n.address("zk-zookeeper", "tcp-client"), opts...)
}

func (n *namespace) connectTo(address string, opts ...client.Option) *client.Client {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c := must.Get(client.Connect(ctx, address, opts...))(n.t)
	n.t.Cleanup(func() { _ = c.Close() })
	return c
}

// members waits until exactly the servers with these ids are members.
func (n *namespace) members(c *client.Client, ids ...int) {
	n.t.Helper()
	must.Do(n.t, wait.Success(patience, fmt.Sprintf("the members are %v", ids), func() error {
		<-time.After(100 * time.Millisecond)
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		config, err := c.Config(ctx)
		if err != nil {
			return err
		}
		var have []int
		for line := range strings.Lines(config.Text) {
			if id, is := strings.CutPrefix(line, "server."); is {
				id, _, _ = strings.Cut(id, "=")
				have = append(have, must.Get(strconv.Atoi(id))(n.t))
			}
		}
		slices.Sort(have)
		if !slices.Equal(have, ids) {
			return errors.New(config.Text)
		}
		return nil
	}))
}

// voters returns the ids of the first servers.
func voters(replicas int) (ids []int) {
	for i := range replicas {
		ids = append(ids, i+1)
	}
	return ids
}

// writer creates znodes all the time, and knows which ones the ensemble acknowledged.
type writer struct {
	n       *namespace
	c       *client.Client
	stop    context.CancelFunc
	done    sync.WaitGroup
	paths   []string
	longest time.Duration // without an acknowledgment
	expired int
}

func (n *namespace) write(c *client.Client) *writer {
	n.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	w := &writer{n: n, c: c, stop: cancel}
	must.Do(n.t, c.EnsurePath(ctx, "/written"))
	last := time.Now()
	w.done.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			path, err := c.Create(ctx, fmt.Sprintf("/written/%d", i), nil)
			switch {
			case err == nil:
				w.paths = append(w.paths, path)
				w.longest = max(w.longest, time.Since(last))
				last = time.Now()
			case errors.Is(err, client.ErrSessionExpired):
				w.expired++
			}
			<-time.After(5 * time.Millisecond)
		}
		w.longest = max(w.longest, time.Since(last))
	})
	return w
}

// check ends the writer, and looks for the acknowledged writes.
func (w *writer) check(what string) {
	w.n.t.Helper()
	w.stop()
	w.done.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	must.Do(w.n.t, w.c.Sync(ctx, "/"))
	names, _, err := w.c.Children(ctx, "/written")
	must.Do(w.n.t, err)
	there := map[string]bool{}
	for _, name := range names {
		there["/written/"+name] = true
	}
	lost := slices.DeleteFunc(slices.Clone(w.paths), func(p string) bool { return there[p] })
	w.n.t.Logf("%s: %d writes acknowledged, %d lost, %d times the session expired, longest pause %v", what, len(w.paths), len(lost), w.expired, w.longest.Round(time.Millisecond))
	if len(lost) > 0 {
		w.n.t.Errorf("%s: lost %v", what, lost)
	}
	if w.expired > 0 {
		w.n.t.Errorf("%s: the session expired", what)
	}
	if len(w.paths) == 0 {
		w.n.t.Errorf("%s: no write was acknowledged", what)
	}
	must.Do(w.n.t, w.c.DeleteAll(ctx, "/written"))
}

// oneAtATime watches the pods until stopped, and reports an error if two are unready at once.
func (n *namespace) oneAtATime() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		worst := ""
		for ctx.Err() == nil {
			out, err := tool("kubectl", "-n", n.name, "get", "pods", "-l", "app.kubernetes.io/component=zookeeper", "-o", `jsonpath={range .items[*]}{.metadata.name}={.status.conditions[?(@.type=="Ready")].status}{"\n"}{end}`)
			if err == nil && strings.Count(out, "=True") < 2 {
				worst = out
			}
			<-time.After(100 * time.Millisecond)
		}
		if worst != "" {
			n.t.Errorf("fewer than two of three pods were ready:\n%s", worst)
		}
	})
	return func() { cancel(); wg.Wait() }
}
