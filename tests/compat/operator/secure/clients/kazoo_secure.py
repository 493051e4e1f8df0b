"""Connects with Kazoo as each argument says and prints who the server takes it for.

An argument is name|host:port|settings; the settings are those of KazooClient, as JSON.
"""

import json
import sys

from kazoo.client import KazooClient
from kazoo.exceptions import AuthFailedError, KazooException
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.security import CREATOR_ALL_ACL


def run(name, address, settings):
    auth = [tuple(pair) for pair in settings.pop("auth_data", [])]
    zk = KazooClient(hosts=address, timeout=30, auth_data=auth, **settings)
    try:
        zk.start(timeout=20 if "wrong" not in name else 3)
        zk.create("/kazoo-" + name, b"", acl=CREATOR_ALL_ACL)
        acl, _ = zk.get_acls("/kazoo-" + name)
        return "ACL %s" % sorted("%s:%s" % (a.id.scheme, a.id.id) for a in acl)
    except (AuthFailedError, KazooTimeoutError):
        return "not let in"
    except KazooException as e:
        return "refused %s" % type(e).__name__
    finally:
        zk.stop()
        zk.close()


for arg in sys.argv[1:]:
    name, address, settings = arg.split("|", 2)
    print("%s: %s" % (name, run(name, address, json.loads(settings or "{}"))), flush=True)
