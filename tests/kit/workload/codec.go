package workload

import (
	"fmt"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tests/kit/history"
)

// body returns the request record for o, or nil if o has none.
func body(o *history.Op) proto.Record {
	switch o.Op {
	case proto.OpCreate2, proto.OpCreate, proto.OpCreateContainer:
		return &proto.CreateRequest{Path: o.Path, Data: []byte(o.Value), ACL: proto.OpenACL(), Flags: int32(o.Mode)}
	case proto.OpDelete:
		return &proto.DeleteRequest{Path: o.Path, Version: o.Version}
	case proto.OpSetData:
		return &proto.SetDataRequest{Path: o.Path, Data: []byte(o.Value), Version: o.Version}
	case proto.OpGetData:
		return &proto.GetDataRequest{Path: o.Path, Watch: o.Watch}
	case proto.OpExists:
		return &proto.ExistsRequest{Path: o.Path, Watch: o.Watch}
	case proto.OpGetChildren2:
		return &proto.GetChildrenRequest{Path: o.Path, Watch: o.Watch}
	case proto.OpSync:
		return &proto.SyncRequest{Path: o.Path}
	case proto.OpAuth:
		return &proto.AuthPacket{Scheme: optionsScheme, Auth: []byte(o.Value)}
	case proto.OpAddWatch:
		return &proto.AddWatchRequest{Path: o.Path, Mode: o.Add}
	case proto.OpMulti:
		return multi(o.Parts)
	case proto.OpSetWatches2:
		w := o.Watches
		return &proto.SetWatches2{RelativeZxid: w.Relative, Data: notNil(w.Data), Exist: notNil(w.Exist), Child: notNil(w.Child),
			Persistent: notNil(w.Persistent), PersistentRecursive: notNil(w.Recursive)}
	}
	return nil // ping, closeSession
}

// notNil keeps an empty list from being sent as null.
func notNil(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}

func multi(parts []history.Part) *proto.MultiRequest {
	q := &proto.MultiRequest{}
	for _, p := range parts {
		o := history.Op{Op: p.Op, Path: p.Path, Value: p.Value, Version: p.Version, Mode: p.Mode}
		rec := body(&o)
		if p.Op == proto.OpCheck {
			rec = &proto.CheckVersionRequest{Path: p.Path, Version: p.Version}
		}
		q.Ops = append(q.Ops, proto.MultiOp{Op: p.Op, Req: rec})
	}
	return q
}

// decode fills in o from the reply after its header.
func decode(o *history.Op, r *proto.Reader) error {
	if o.Code != proto.Ok {
		return nil
	}
	switch o.Op {
	case proto.OpCreate:
		var resp proto.CreateResponse
		resp.Decode(r)
		o.Created = resp.Path
	case proto.OpCreate2, proto.OpCreateContainer:
		var resp proto.Create2Response
		resp.Decode(r)
		o.Created, o.Stat = resp.Path, history.StatOf(&resp.Stat)
	case proto.OpSetData, proto.OpExists:
		var st proto.Stat
		st.Decode(r)
		o.Stat = history.StatOf(&st)
	case proto.OpGetData:
		var resp proto.GetDataResponse
		resp.Decode(r)
		o.Data, o.Stat = string(resp.Data), history.StatOf(&resp.Stat)
	case proto.OpGetChildren2:
		var resp proto.GetChildren2Response
		resp.Decode(r)
		o.Children, o.Stat = notNil(resp.Children), history.StatOf(&resp.Stat)
	case proto.OpSync:
		var resp proto.SyncResponse
		if resp.Decode(r); resp.Path != o.Path {
			return fmt.Errorf("workload: sync of %q", resp.Path)
		}
	case proto.OpAddWatch:
		if code := r.Int(); code != 0 {
			return fmt.Errorf("workload: addWatch with %d", code)
		}
	case proto.OpMulti:
		return decodeMulti(o, r)
	}
	return r.Err()
}

// decodeMulti reads a result for every part.
func decodeMulti(o *history.Op, r *proto.Reader) error {
	for i := range o.Parts {
		p := &o.Parts[i]
		var h proto.MultiHeader
		h.Decode(r)
		switch {
		case r.Err() != nil:
			return r.Err()
		case h.Done:
			return fmt.Errorf("workload: %d results for a multi of %d", i, len(o.Parts))
		case h.Op == proto.OpError:
			p.Code = proto.Code(r.Int())
			continue
		case h.Op != p.Op:
			return fmt.Errorf("workload: result %d of a multi is a %v, asked for was %v", i, h.Op, p.Op)
		}
		part := history.Op{Op: p.Op}
		if err := decode(&part, r); err != nil {
			return err
		}
		p.Created, p.Stat = part.Created, part.Stat
	}
	var end proto.MultiHeader
	if end.Decode(r); r.Err() == nil && !end.Done {
		return fmt.Errorf("workload: more results than the %d operations of a multi", len(o.Parts))
	}
	return r.Err()
}
