package kubernetes

import (
	"os"
	"os/exec"
	"testing"
)

// TestChart runs the tests of the chart, which are in a separate module.
func TestChart(t *testing.T) {
	t.Parallel()
	if os.Getenv("ZKGO_REQUIRE") != "1" {
		t.Skip("builds Helm (set ZKGO_REQUIRE=1)")
	}
	cmd := exec.Command("go", "test", "./...")
	cmd.Dir = "chart"
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
