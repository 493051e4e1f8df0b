package zoocfg

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// ConnThrottle limits the rate of new sessions with a token bucket and with BLUE,
// which rejects a fraction of the clients at random.
type ConnThrottle struct {
	Tokens         int // the bucket's size; 0 means no limit
	FillTime       time.Duration
	FillCount      int           // tokens added every FillTime
	FreezeTime     time.Duration // between changes of the drop probability; negative disables BLUE
	DropIncrease   float64
	DropDecrease   float64
	DecreaseRatio  float64 // fraction of the bucket that may be in use while the probability decreases
	WeightEnabled  bool
	GlobalSession  int // tokens that a new session costs if weights are enabled
	LocalSession   int
	RenewedSession int // tokens that a reconnecting session costs
}

// RequestThrottle limits the number of requests in progress.
type RequestThrottle struct {
	MaxRequests     int // 0 means no limit
	StallTime       time.Duration
	DropStale       bool
	StaleConnection bool          // a request is stale if its connection is closed
	StaleLatency    bool          // a request is stale if it's older than its session's timeout
	OpWaitTime      time.Duration // requests that wait longer get ThrottledOp; 0 means never
}

func limitKeys() []key {
	return []key{
		{name: "jute.maxbuffer", set: takes((*Config).setJuteMaxBuffer, func(c *Config) string { return strconv.Itoa(c.JuteMaxBuffer) })},
		unused("jute.maxbuffer.extrasize", propInt(anyInt, func(c *Config) *int { return &c.JuteExtraSize })),
		{name: "largeRequestMaxBytes", set: propInt(1, func(c *Config) *int { return &c.LargeRequestMax })},
		{name: "largeRequestThreshold", set: propInt(Unset, func(c *Config) *int { return &c.LargeRequestAt })},
		{name: "globalOutstandingLimit", set: propInt(1, func(c *Config) *int { return &c.GlobalOutstanding })},
		{name: "memoryCeiling", set: takes(setMemoryCeiling, func(c *Config) string { return c.MemoryCeiling.String() })},
		{name: "znode.container.checkIntervalMs", set: propMillis(1, func(c *Config) *time.Duration { return &c.ContainerCheckInterval })},
		{name: "znode.container.maxPerMinute", set: propInt(1, func(c *Config) *int { return &c.ContainerMaxPerMinute })},
		{name: "znode.container.maxNeverUsedIntervalMs", set: propMillis(0, func(c *Config) *time.Duration { return &c.ContainerMaxNeverUsed })},
	}
}

func throttleKeys() []key {
	const conn = "connection_throttle_"
	return []key{
		{name: conn + "tokens", set: propInt(0, func(c *Config) *int { return &c.ConnThrottle.Tokens })},
		{name: conn + "fill_time", set: propMillis(1, func(c *Config) *time.Duration { return &c.ConnThrottle.FillTime })},
		{name: conn + "fill_count", set: propInt(0, func(c *Config) *int { return &c.ConnThrottle.FillCount })},
		{name: conn + "freeze_time", set: propMillis(Unset, func(c *Config) *time.Duration { return &c.ConnThrottle.FreezeTime })},
		{name: conn + "drop_increase", set: fraction(func(c *Config) *float64 { return &c.ConnThrottle.DropIncrease })},
		{name: conn + "drop_decrease", set: fraction(func(c *Config) *float64 { return &c.ConnThrottle.DropDecrease })},
		{name: conn + "decrease_ratio", set: fraction(func(c *Config) *float64 { return &c.ConnThrottle.DecreaseRatio })},
		{name: conn + "weight_enabled", set: boolean(func(c *Config) *bool { return &c.ConnThrottle.WeightEnabled })},
		{name: conn + "global_session_weight", set: propInt(1, func(c *Config) *int { return &c.ConnThrottle.GlobalSession })},
		{name: conn + "local_session_weight", set: propInt(1, func(c *Config) *int { return &c.ConnThrottle.LocalSession })},
		{name: conn + "renew_session_weight", set: propInt(1, func(c *Config) *int { return &c.ConnThrottle.RenewedSession })},

		{name: "request_throttle_max_requests", set: insteadBelow("", 0, "0", propInt(0, func(c *Config) *int { return &c.RequestThrottle.MaxRequests }))},
		{name: "request_throttle_stall_time", set: propMillis(1, func(c *Config) *time.Duration { return &c.RequestThrottle.StallTime })},
		{name: "request_throttle_drop_stale", set: boolean(func(c *Config) *bool { return &c.RequestThrottle.DropStale })},
		unused("request_stale_connection_check", boolean(func(c *Config) *bool { return &c.RequestThrottle.StaleConnection })),
		{name: "request_stale_latency_check", set: boolean(func(c *Config) *bool { return &c.RequestThrottle.StaleLatency })},
		{name: "throttled_op_wait_time", set: insteadBelow("", 0, "0", propMillis(0, func(c *Config) *time.Duration { return &c.RequestThrottle.OpWaitTime }))},
	}
}

func defaultConnThrottle() ConnThrottle {
	return ConnThrottle{
		FillTime: time.Millisecond, FillCount: 1, FreezeTime: -time.Millisecond,
		DropIncrease: 0.02, DropDecrease: 0.002, GlobalSession: 3, LocalSession: 1, RenewedSession: 2,
	}
}

func defaultRequestThrottle() RequestThrottle {
	return RequestThrottle{StallTime: 100 * time.Millisecond, DropStale: true, StaleConnection: true}
}

// fraction is a probability or a fraction. ZooKeeper accepts any number, but values
// outside of [0, 1] have no sensible effect.
func fraction(field func(*Config) *float64) setter {
	return setter{func(c *Config, v string) error {
		f, err := strconv.ParseFloat(v, 64)
		if err != nil || !(f >= 0 && f <= 1) {
			return expected("a number from 0 to 1", v)
		}
		*field(c) = f
		return nil
	}, func(c *Config) string { return strconv.FormatFloat(*field(c), 'g', -1, 64) }}
}

// Ceiling is the memory that the server may use before it refuses writes: Bytes if
// nonzero, otherwise Percent of the memory of the machine or the container. If both
// are 0, there is no ceiling.
type Ceiling struct {
	Bytes   int64
	Percent int
}

// String returns the value as written in the file.
func (m Ceiling) String() string {
	switch {
	case m.Bytes != 0:
		return strconv.FormatInt(m.Bytes, 10)
	case m.Percent != 0:
		return strconv.Itoa(m.Percent) + "%"
	}
	return "off"
}

// minCeiling is less than a server with an empty tree needs.
const minCeiling = 32 << 20

func setMemoryCeiling(c *Config, v string) error {
	const want = "off, a percentage as 80%, or bytes, e.g. 512m (k, m or g), at least 32m"
	if v == "off" {
		c.MemoryCeiling = Ceiling{}
		return nil
	}
	if v == "" {
		return expected(want, v)
	}
	digits, unit := v[:len(v)-1], v[len(v)-1]
	scale := int64(1)
	switch unit {
	case '%':
		n, ok := parseInt(digits)
		if !ok || n < 1 || n > 100 {
			return fmt.Errorf("expected a percentage from 1%% to 100%%, got %q", v)
		}
		c.MemoryCeiling = Ceiling{Percent: n}
		return nil
	case 'k', 'K':
		scale = 1 << 10
	case 'm', 'M':
		scale = 1 << 20
	case 'g', 'G':
		scale = 1 << 30
	default:
		digits = v
	}
	n, ok := parseLong(digits)
	if !ok || n < 0 || n > math.MaxInt64/scale || n*scale < minCeiling {
		return expected(want, v)
	}
	c.MemoryCeiling = Ceiling{Bytes: n * scale}
	return nil
}
