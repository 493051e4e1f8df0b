package server

import "github.com/zkgo/zkgo/internal/limits"

import "github.com/zkgo/zkgo/server/zoocfg"

// limitsFromZooCfg translates the settings that limit the load.
func (c *Config) limitsFromZooCfg(z *zoocfg.Config) {
	c.EagerACL = z.EnableEagerACLCheck
	c.LargeRequestMax = z.LargeRequestMax
	if z.LargeRequestAt != zoocfg.Unset {
		c.LargeRequestAbove = max(z.LargeRequestAt, 1) // every request is longer than 1
	}
	c.MemoryCeiling = z.MemoryCeiling.Bytes
	if p := z.MemoryCeiling.Percent; p > 0 {
		c.MemoryCeiling = limits.SystemMemory() / 100 * int64(p)
	}
	r := z.RequestThrottle
	c.RequestThrottle = RequestThrottle{
		MaxRequests: r.MaxRequests, StallTime: r.StallTime, DropStale: r.DropStale, StaleLatency: r.StaleLatency, OpWait: r.OpWaitTime,
	}
	t := z.ConnThrottle
	if t.Tokens == 0 {
		return
	}
	c.ConnThrottle = &ConnThrottle{
		Tokens: t.Tokens, FillTime: t.FillTime, FillCount: t.FillCount, FreezeTime: t.FreezeTime,
		DropIncrease: t.DropIncrease, DropDecrease: t.DropDecrease, DecreaseRatio: t.DecreaseRatio, New: 1, Renewed: 1,
	}
	if !t.WeightEnabled {
		return
	}
	// As in ZooKeeper, no session weighs less than a local one, and the bucket is
	// counted in new global sessions. A session weighs as much as a local one if
	// sessions are local.
	global, renewed := max(t.GlobalSession, t.LocalSession), max(t.RenewedSession, t.LocalSession)
	c.ConnThrottle.Tokens *= global
	c.ConnThrottle.FillCount *= global
	c.ConnThrottle.New, c.ConnThrottle.Renewed = global, renewed
	if z.LocalSessionsEnabled {
		c.ConnThrottle.New = t.LocalSession
	}
}
