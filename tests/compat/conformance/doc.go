// Package conformance judges a server by transcripts. It has scripts of raw frames, the
// replies and events of the real Apache ZooKeeper 3.9.5, and a runner that plays a script
// against any address and writes the transcript. We use a separate codec and only the
// standard library, so that no code of the server under test affects the judgement.
//
//	go test ./tests/compat/conformance                     zkgo against the golden files
//	ZKGO_LIVE=1 go test ./tests/compat/conformance         the real server as well
//	go test ./tests/compat/conformance -record             records golden files (-run for one)
//	ZKGO_SEEDS=50 ZKGO_LIVE=1 go test …             random scripts on both sides
//
// # Scripts
//
// A script is testdata/NAME.txt; it runs on its own server, which starts empty.
// The real server's replies are in NAME.golden. Lines consist of words; "#"
// begins a comment; a line that ends in "{" opens a block that ends at "}".
//
//	server enforceQuota=true        zoo.cfg lines the server runs with
//	jvm name=value                  settings ZooKeeper only reads as Java properties
//	connect a                       a new session on a new connection named a
//	connect b session=a             the session of a again; also protocol=, last=,
//	                                timeout=, password= (wrong, short, null, "…", hex:…),
//	                                readOnly= (none: omit the byte), cut=, trail=, len=;
//	                                with a block: requests in the same segment
//	a create /x data flags=1        a request, its fields in wire order or by name;
//	                                ops.go lists operations, fields and defaults
//	a multi { … }                   sub-operations, one a line; hdr=type,done,err replaces
//	                                the header of one, end=type,done,err or none the last
//	a { … }                         requests in one segment, without waiting in between;
//	                                "a split {" sends it byte by byte, "a closes {" reads
//	                                until the end of the connection
//	a op code=99 body=hex:00        any opcode, any body
//	a raw ffffffff                  bytes as they are
//	a eof                           waits until the server ends the connection
//	a drop                          ends the connection on the client's side
//	a drain, drain                  sends a ping: before its reply, all events arrive that
//	                                were caused by requests answered earlier
//	a await 2                       waits for events that no client's request causes
//	a mark m                        names the zxid of a's last reply: rel=@m, last=@m+1
//	for i in 1..9 x y { … ${i} … }  loops; ${i+1}, ${i%3}, ${i:%010d} compute
//	tick                            waits until the millisecond clock has clearly advanced
//
// Strings and buffers: bare, "quoted as in Go", null, hex:00ff, rep:1000:x,
// len:-2:text (a false length). ACLs: open, null, [31:world:anyone,…] with ~ for
// a null scheme or id. Lists: [/a,"/b c"], null, count:-7.
//
// Every request accepts: xid=, code= (another opcode), cut=N (bytes removed from the end),
// trail=hex (bytes added at the end), len=N (another frame length); maybe (a reply may come
// or not and is not recorded), unordered (see below), anyzxid (the zxid of the reply is not
// recorded). After the last statement we drain every open connection, so that we don't lose
// an event.
//
// # Contents of a transcript
//
// A transcript has every statement, followed by everything that arrived, in order
// of arrival, decoded field by field. Leftover bytes, missing bytes, frames out
// of order and the end of a connection have their own lines. Replaced, one to
// one:
//
//   - a zxid by its distance from the zxid of the session that the runner opens
//     before the script (Z3): order and gaps stay, 0 and -1 stay
//   - a session id by the order of first appearance (S1); 0 stays
//   - a password by its length and the order of first appearance (16#P1); all
//     zeros are 16#0
//   - the time of a transaction by the number of its zxid (T3), after checking that it is
//     the same wherever that zxid appears, and that it lies within the time in which the
//     write was in flight; a time that fails the check is shown as failed
//   - long data and lists by length and SHA-1
//
// We drop or sort the following, because ZooKeeper leaves it open:
//
//   - the order of the names of getChildren, getChildren2, getEphemerals and of
//     the identities of whoAmI (sorted)
//   - the order of ACL entries, only where the request says "unordered": the
//     expansion of scheme auth
//   - the order of neighbouring events, only where the statement says
//     "unordered": the events of a session that closes
//   - the position of the reply to auth among the replies to requests sent in the same
//     segment (it comes first), unless the statement says "strict"
//   - the replies to requests marked "maybe", and the zxid of requests marked "anyzxid"
//
// testdata/not-compared.md lists what no script compares, and why.
// testdata/differences.txt lists where zkgo deliberately differs.
package conformance
