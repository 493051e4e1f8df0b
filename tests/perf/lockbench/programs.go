package lockbench

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/zkgo/zkgo/tests/kit/process"
)

// programs are the built programs.
type programs struct {
	zkgo    string
	workers map[string][]string // command lines
	missing map[string]error    // workers that could not be built
}

// buildPrograms builds the server and the client programs. Programs that need more than
// this module may be missing.
func buildPrograms(dir string) (programs, error) {
	p := programs{zkgo: filepath.Join(dir, "zkgo"), workers: map[string][]string{}, missing: map[string]error{}}
	module, err := process.Root()
	if err != nil {
		return p, err
	}
	workers := filepath.Join(module, "tests", "perf", "lockbench", "workers")
	if err := process.Build(p.zkgo); err != nil {
		return p, err
	}
	for _, name := range []string{"zk", "redis", "etcd"} {
		binary := filepath.Join(dir, "worker-"+name)
		err := goBuild(filepath.Join(workers, name), binary, ".")
		switch {
		case err == nil:
			p.workers[name] = []string{binary}
		case name == "etcd": // the build downloads its client
			p.missing[name] = err
		default:
			return p, err
		}
	}
	if p.workers["redisson"], err = buildRedisson(filepath.Join(workers, "redisson"), filepath.Join(dir, "redisson")); err != nil {
		p.missing["redisson"] = err
	}
	return p, nil
}

func goBuild(dir, target, pkg string) error {
	cmd := exec.Command("go", "build", "-o", target, pkg)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building %s in %s: %w: %s", pkg, dir, err, out)
	}
	return nil
}

// buildRedisson compiles the Java worker. Redisson's jars stay in the cache directory of
// .ci/run.
func buildRedisson(source, target string) ([]string, error) {
	for _, tool := range []string{"javac", "mvn"} {
		if _, err := exec.LookPath(tool); err != nil {
			return nil, err
		}
	}
	cache := os.Getenv("ZKGO_CI_DIR")
	if cache == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return nil, err
		}
		cache = filepath.Join(home, ".cache", "zkgo-ci")
	}
	jars := filepath.Join(cache, "redisson-3.52.0")
	if _, err := os.Stat(filepath.Join(jars, "complete")); err != nil {
		out, err := exec.Command("mvn", "-q", "-B", "-f", filepath.Join(source, "pom.xml"), "dependency:copy-dependencies", "-DoutputDirectory="+jars).CombinedOutput()
		if err != nil {
			return nil, fmt.Errorf("fetching Redisson: %w: %s", err, out)
		}
		if err := os.WriteFile(filepath.Join(jars, "complete"), nil, 0o600); err != nil {
			return nil, err
		}
	}
	classpath := filepath.Join(jars, "*")
	if out, err := exec.Command("javac", "-nowarn", "-d", target, "-cp", classpath, filepath.Join(source, "Worker.java")).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("compiling Worker.java: %w: %s", err, out)
	}
	return []string{"java", "-cp", target + string(os.PathListSeparator) + classpath, "Worker"}, nil
}
