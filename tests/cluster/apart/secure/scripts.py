"""What runs beside Hadoop's own client: each of these sets `found`, and uses the names that a test gives it."""

_START = """
import sys
from pathlib import Path
from hadoop.client.filesystem import FileSystem
from hadoop.client.jvm import HadoopHome, configuration, java, start

start(HadoopHome(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]))
conf = configuration()
path = java("org.apache.hadoop.fs.Path")
"""
_BY_KEYTAB = f"""{_START}
group = java("org.apache.hadoop.security.UserGroupInformation")
group.setConfiguration(conf)
group.loginUserFromKeytab(user, keytab)
files = java("org.apache.hadoop.fs.FileSystem").get(conf)
"""
WRITE = f"""{_BY_KEYTAB}
made = files.create(path(place))
made.write(b"hers")
made.close()
found = [[str(one.getPath()), str(one.getOwner())] for one in files.listStatus(path(place).getParent())]
"""
LIST = f"""{_BY_KEYTAB}
try:
    found = len(files.listStatus(path(place)))
except Exception as error:
    found = str(error)
"""
RENEW = f"""{_BY_KEYTAB}
ends = files.getDelegationToken(user).renew(conf)
found = (ends - java("java.lang.System").currentTimeMillis()) / 1000
"""
OWNERS = f"""{_START}
found = sorted({{str(one.getOwner()) for one in FileSystem().java.listStatus(path(target))}})
"""
PERMIT = f"""{_START}
FileSystem().java.setPermission(path(place), java("org.apache.hadoop.fs.permission.FsPermission")(mode))
found = None
"""
# One listing for the whole process, as a master has it: its first call is before the failover, its last one behind it.
PAGES = f"""{_START}
from hadoop.client.listing import Listing

sys.kept_listing = getattr(sys, "kept_listing", None) or Listing(FileSystem())
found = [sum(len(page.partialListing) for page in sys.kept_listing.pages(folder)), sorted(sys.kept_listing.racks())]
"""
HELD = f"""{_START}
credentials = java("org.apache.hadoop.security.Credentials").readTokenStorageFile(java("java.io.File")(file), conf)
found = sorted((str(one.getKind()), str(one.getService()), str(one.decodeIdentifier().getUser().getShortUserName()))
               for one in credentials.getAllTokens())
"""
# A command would start a JVM and log in for each look at a job.
STATUS = f"""{_START}
from hadoop.client.yarn import Yarn
from jobs.application import following

sys.kept_yarn = getattr(sys, "kept_yarn", None) or Yarn()
known = sys.kept_yarn.application(job)
told = following.ask(known)
found = [known.has_ended, told.to_json() if told else {{}}]
"""
# An application whose master says one word and ends: there is a log to be read.
SAY = f"""{_START}
import time

client = java("org.apache.hadoop.yarn.client.api.YarnClient").createYarnClient()
client.init(conf)
client.start()
context = client.createApplication().getApplicationSubmissionContext()
records = "org.apache.hadoop.yarn.api.records"
command = java("java.util.Collections").singletonList("echo spoken > <LOG_DIR>/stdout")
launch = java(f"{{records}}.ContainerLaunchContext").newInstance(None, None, command, None, None, None)
context.setAMContainerSpec(launch)
context.setResource(java(f"{{records}}.Resource").newInstance(256, 1))
context.setMaxAppAttempts(1)
client.submitApplication(context)
application = context.getApplicationId()
while "%s" % client.getApplicationReport(application).getYarnApplicationState() not in ("FAILED", "FINISHED", "KILLED"):
    time.sleep(0.2)
found = str(application)
client.close()
"""
