package mirror

import (
	"strings"
	"testing"
)

// TestCheckLogs lists logs of voters and the result. The command prints the file with the server's
// number.
func TestCheckLogs(t *testing.T) {
	t.Parallel()
	needShell(t)
	const toolkit = "11/28/26 12:00:00 AM UTC session 0x1000 cxid 0x7 zxid 0x%s setData /a\nEOF reached after 7 txns."
	line := func(zxid string) string { return strings.Replace(toolkit, "%s", zxid, 1) }
	for name, c := range map[string]struct {
		logs map[string]string
		want string
	}{
		"all":              {map[string]string{"1": line("100000005"), "2": "0x100000004", "3": "zxid: 0x100000005"}, ""},
		"a majority":       {map[string]string{"1": line("100000005"), "2": line("100000005")}, ""},
		"the last counts":  {map[string]string{"1": line("200000000") + "\n" + line("100000005"), "2": "0x1"}, ""},
		"newer":            {map[string]string{"1": "0x100000005", "2": "0x100000005", "3": line("100000006")}, "the log of server 3 (zk3:2181) has transaction 0x100000006, the mirror only those up to 0x100000005"},
		"a later epoch":    {map[string]string{"1": line("200000001"), "2": "0x1", "3": "0x1"}, "has transaction 0x200000001"},
		"a minority":       {map[string]string{"1": "0x1", "4": "0x1"}, "the logs of 1 of 3 voters were read, 2 are needed"},
		"nothing in a log": {map[string]string{"1": "0x1", "2": "EOF reached after 0 txns."}, `the log of server 2 (zk2:2181): the command printed no zxid: "EOF`},
		"no number":        {map[string]string{"1": "0x1", "2": "0xffffffffffffffff"}, "value out of range"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for id, text := range c.logs {
				file(t, dir, id, text+"\n")
			}
			old := &Old{Servers: []OldServer{{ID: 1, Client: "zk1:2181"}, {ID: 2, Client: "zk2:2181"}, {ID: 3, Client: "zk3:2181"}, {ID: 4, Client: "zk4:2181", Observer: true}}}
			h := Hook{Command: "cat '" + dir + "/{id}'"}
			err := CheckLogs(t.Context(), h, old, 0x100000005)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if name == "a majority" {
				old.Settings = map[string]string{"weight.1": "2"}
				if err := CheckLogs(t.Context(), h, old, 0x100000005); err == nil || !strings.Contains(err.Error(), "3 are needed") || !strings.Contains(err.Error(), "the command for server 3 (zk3:2181)") {
					t.Errorf("with weights: %v", err)
				}
			}
		})
	}
}
