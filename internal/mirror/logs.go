package mirror

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// CheckLogs proves that a mirror has every write that was acknowledged to a client, for an old ensemble
// that is stopped. The command of h should print the newest transaction in the log of a server,
// as "… zxid 0x…" or just as 0x…. ZooKeeper's TxnLogToolkit does:
//
//	ssh {host} 'cd /opt/zookeeper && bin/zkTxnLogToolkit.sh $(ls -t /var/lib/zookeeper/version-2/log.* | head -1)'
//
// A committed transaction is in the logs of a quorum of the voters. Any majority of the voters has
// one voter in common with that quorum. So if no log of a majority has anything newer than the
// mirror, no committed transaction is missing. With groups or weights, a quorum may be smaller, and
// we need the logs of all voters.
func CheckLogs(ctx context.Context, h Hook, old *Old, zxid int64) error {
	var voters []OldServer
	for _, s := range old.Servers {
		if !s.Observer {
			voters = append(voters, s)
		}
	}
	texts, errs := h.outputs(ctx, voters)
	read := 0
	for i := range voters {
		if errs[i] != nil {
			continue
		}
		newest, err := zxidIn(texts[i])
		switch {
		case err != nil:
			errs[i] = fmt.Errorf("mirror: the log of %s: %w", &voters[i], err)
		case newest > zxid:
			return fmt.Errorf("mirror: the log of %s has transaction %#x, the mirror only those up to %#x: start the old servers again, with their ports for clients closed, until it has caught up",
				&voters[i], newest, zxid)
		default:
			read++
		}
	}
	if need := old.quorum(len(voters)); read < need {
		return errors.Join(append([]error{fmt.Errorf("mirror: the logs of %d of %d voters were read, %d are needed to prove the last transaction", read, len(voters), need)}, errs...)...)
	}
	return nil
}

// quorum returns the number of voters' logs that together contain every committed transaction.
func (o *Old) quorum(voters int) int {
	for key := range o.Settings {
		if strings.HasPrefix(key, "group.") || strings.HasPrefix(key, "weight.") {
			return voters
		}
	}
	return voters/2 + 1
}

var (
	zxidAfterWord = regexp.MustCompile(`(?i)\bzxid[ =:]+0x([0-9a-f]{1,16})\b`)
	zxidAlone     = regexp.MustCompile(`^0x([0-9a-f]{1,16})$`)
)

// zxidIn returns the last zxid in the output of a command.
func zxidIn(text string) (int64, error) {
	match := zxidAlone.FindStringSubmatch(text)
	if all := zxidAfterWord.FindAllStringSubmatch(text, -1); len(all) > 0 {
		match = all[len(all)-1]
	}
	if match == nil {
		return 0, fmt.Errorf("the command printed no zxid: %q", text)
	}
	zxid, err := strconv.ParseUint(match[1], 16, 63)
	return int64(zxid), err
}
