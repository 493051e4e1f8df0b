package failover

import "time"

// Plan returns the scenarios to measure for a program. The full plan lasts about seventeen minutes
// for both programs; the small one runs each scenario as briefly as possible.
func Plan(program string, small bool) []Scenario {
	if small {
		return []Scenario{Idle(100), KillLeader(3), VanishLeader(1), StopLeader(3), RollingRestart(1), RestartAll(1),
			Starve(3 * time.Second), StallDisks(8 * time.Second)}
	}
	if program == "zkgo" {
		return []Scenario{Idle(2000), KillLeader(60), VanishLeader(10), StopLeader(30), RollingRestart(3), RestartAll(10),
			Starve(time.Minute), Overload(2 * time.Minute), StallDisks(time.Minute)}
	}
	return []Scenario{Idle(2000), KillLeader(20), VanishLeader(3), StopLeader(10), RollingRestart(2), RestartAll(4),
		Starve(30 * time.Second), Overload(2 * time.Minute), StallDisks(30 * time.Second)}
}

// The limits for zkgo's median times, in milliseconds.
const (
	killLimit = 350
	stopLimit = 50
)
