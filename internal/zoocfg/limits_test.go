package zoocfg

import (
	"strings"
	"testing"
	"time"
)

func TestMemoryCeiling(t *testing.T) {
	t.Parallel()
	for v, want := range map[string]Ceiling{
		"off": {}, "1%": {Percent: 1}, "100%": {Percent: 100}, "67108864": {Bytes: 64 << 20},
		"64m": {Bytes: 64 << 20}, "32768k": {Bytes: 32 << 20}, "2G": {Bytes: 2 << 30},
	} {
		c := parse(t, "memoryCeiling="+v+"\n")
		if c.MemoryCeiling != want {
			t.Errorf("%s: %+v, want %+v", v, c.MemoryCeiling, want)
		}
		again := parse(t, "memoryCeiling="+want.String()+"\n")
		if again.MemoryCeiling != want {
			t.Errorf("%s is written as %s, which is %+v", v, want, again.MemoryCeiling)
		}
	}
	for _, v := range []string{"", "0", "1m", "-5", "0%", "101%", "g", "%", "9999999999g", "2 g", "on"} {
		_, err := ParseText("zoo.cfg", "dataDir=/data\nmemoryCeiling="+v+"\n", WithReadFile(noFiles))
		if err == nil || !strings.HasPrefix(err.Error(), "zoo.cfg:2: memoryCeiling: expected ") {
			t.Errorf("%q: %v", v, err)
		}
	}
	if c := parse(t, ""); c.MemoryCeiling != (Ceiling{Percent: 80}) {
		t.Errorf("default %v", c.MemoryCeiling)
	}
}

func TestThrottles(t *testing.T) {
	t.Parallel()
	c := reachable(t, strings.Join([]string{
		"connection_throttle_tokens=100", "connection_throttle_fill_time=20", "connection_throttle_fill_count=3",
		"connection_throttle_freeze_time=50", "connection_throttle_drop_increase=0.5", "connection_throttle_drop_decrease=.25",
		"connection_throttle_decrease_ratio=1e-1", "connection_throttle_weight_enabled=true",
		"request_throttle_max_requests=0x10", "request_throttle_stall_time=5", "request_throttle_drop_stale=false",
		"request_stale_latency_check=true", "throttled_op_wait_time=7",
	}, "\n"))
	want := ConnThrottle{Tokens: 100, FillTime: 20 * time.Millisecond, FillCount: 3, FreezeTime: 50 * time.Millisecond,
		DropIncrease: 0.5, DropDecrease: 0.25, DecreaseRatio: 0.1, WeightEnabled: true, GlobalSession: 3, LocalSession: 1, RenewedSession: 2}
	if c.ConnThrottle != want {
		t.Errorf("%+v", c.ConnThrottle)
	}
	if r := c.RequestThrottle; r != (RequestThrottle{MaxRequests: 16, StallTime: 5 * time.Millisecond, StaleConnection: true, StaleLatency: true, OpWaitTime: 7 * time.Millisecond}) {
		t.Errorf("%+v", r)
	}
	if len(c.Ignored)+len(c.Warnings) != 0 {
		t.Errorf("%v %v", c.Ignored, c.Warnings)
	}
	for _, line := range []string{"connection_throttle_drop_increase=2", "connection_throttle_decrease_ratio=NaN", "connection_throttle_fill_time=0"} {
		if _, err := ParseText("zoo.cfg", "dataDir=/data\n"+line+"\n", WithReadFile(noFiles)); err == nil {
			t.Errorf("%s is taken", line)
		}
	}
}
