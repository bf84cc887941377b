# SPDX-License-Identifier: MIT
"""works: what is run under each allocator.

A Command is one program, measured from its start to its end. A Server is started, loaded by a
client that is not under the allocator, and stopped: its time is the client's. Both are sized to
take about a second, and do the same in every run.
"""
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import time

from report import STARTS

HERE = os.path.dirname(os.path.abspath(__file__))


class Failed(Exception):
    """A program under test did not do what it is to do."""


class Work:
    group = None
    tree = False          # look at its children as well
    instructions = 0      # operations of which callgrind is to count the instructions
    variants = ()         # VATALLOC_OPTIONS to be compared in place of other allocators: a sweep
    full = False          # takes many minutes: only if it is asked for
    rounds = 99           # at most, unless it is named
    requires = ()         # programs

    def __init__(self, name, group):
        self.name = name
        self.group = group

    def missing(self):
        return [p for p in self.requires if not shutil.which(p)]

    def prepare(self, place):
        """Once, before the first run, in a directory of its own."""


class Command(Work):
    """One program; `small` is its argument list for passes that slow it down much."""

    def __init__(self, name, group, argv, small=None, stdin=None, **attributes):
        super().__init__(name, group)
        self.argv = argv
        self.small = small or argv
        self.stdin = stdin
        self.__dict__.update(attributes)

    def run(self, place, prefix, small=False):
        with open(self.stdin or '/dev/null', 'rb') as stdin, \
                open(os.path.join(place, 'output'), 'wb') as output:
            status = subprocess.run(prefix + (self.small if small else self.argv), cwd=place,
                                    stdin=stdin, stdout=output, stderr=output).returncode
        if status:
            raise Failed('%s ended with status %d: %s' % (self.name, status, tail(place, 'output')))
        return {}


class Server(Work):
    group = 'programs'
    stop_signal = signal.SIGTERM
    tree = True
    user = None  # UID:GID it must run as

    def run(self, place, prefix, small=False):
        self.before(place)
        with open(os.path.join(place, 'output'), 'wb') as output:
            process = subprocess.Popen(prefix + self.start(place), cwd=place, stdout=output,
                                       stderr=output, stdin=subprocess.DEVNULL)
            try:
                self.wait_until_ready(place, process)
                since = time.monotonic()
                result = self.load(place, small)
                result.setdefault('wall', time.monotonic() - since)
                process.send_signal(self.stop_signal)
                status = process.wait(60)
            finally:
                if process.poll() is None:
                    process.terminate()
                    try:
                        process.wait(10)
                    except subprocess.TimeoutExpired:
                        process.kill()
                        process.wait()
        if status:
            raise Failed('%s ended with status %d: %s' % (self.name, status, tail(place, 'output')))
        return result

    def before(self, place):
        pass

    def wait_until_ready(self, place, process):
        for _ in range(3000):
            if process.poll() is not None:
                raise Failed('%s does not start, status %d: %s' %
                             (self.name, process.returncode, tail(place, 'output')))
            if self.ready(place):
                return
            time.sleep(0.01)
        raise Failed('%s is not ready after 30 s: %s' % (self.name, tail(place, 'output')))


def tail(place, name):
    with open(os.path.join(place, name), errors='replace') as f:
        return ' | '.join(f.read().strip().splitlines()[-5:])


def client(argv, place):
    """The other side of a server: on the other CPU, if there is one."""
    if os.cpu_count() > 1:
        argv = ['taskset', '-c', '1'] + argv
    done = subprocess.run(argv, cwd=place, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True)
    if done.returncode:
        raise Failed('%s: %s' % (' '.join(argv), done.stdout.strip()[-500:]))
    return done.stdout


def connects(family, address):
    with socket.socket(family, socket.SOCK_STREAM) as s:
        return s.connect_ex(address) == 0


def free_port():
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        return s.getsockname()[1]


def number(pattern, text):
    match = re.search(pattern, text, re.M)
    if not match:
        raise Failed('no /%s/ in: %s' % (pattern, text[-500:]))
    return float(match[1])


class Nginx(Server):
    requires = ('nginx', 'ab')
    stop_signal = signal.SIGQUIT
    # Of one run; what slows the program down much gets a tenth.
    requests, connections, path = 30000, 100, '/'

    def __init__(self, name='nginx', group='programs', **attributes):
        super().__init__(name, group)
        self.__dict__.update(attributes)

    def before(self, place):
        os.makedirs(os.path.join(place, 'site'), exist_ok=True)
        with open(os.path.join(place, 'site', '1k'), 'w') as f:
            f.write('0123456789abcde\n' * 64)
        self.port = free_port()
        with open(os.path.join(HERE, 'programs', 'nginx.conf')) as f:
            text = f.read().replace('@PWD@', place).replace('@PORT@', str(self.port))
        with open(os.path.join(place, 'nginx.conf'), 'w') as f:
            f.write(text)
        # A new one each time: it would grow by the run.
        open(os.path.join(place, 'access.log'), 'w').close()

    def start(self, place):
        return ['nginx', '-p', place, '-c', place + '/nginx.conf', '-e', place + '/error.log']

    def ready(self, _):
        return connects(socket.AF_INET, ('127.0.0.1', self.port))

    def url(self):
        return 'http://127.0.0.1:%d%s' % (self.port, self.path)

    def load(self, place, small):
        requests = self.requests // 10 if small else self.requests
        text = client(['ab', '-q', '-n', str(requests), '-c', str(self.connections), self.url()],
                      place)
        if not re.search(r'^Failed requests: +0$', text, re.M) or 'Non-2xx' in text:
            raise Failed('ab: ' + text[-800:])
        return {'wall': number(r'^Time taken for tests: +([\d.]+)', text),
                'throughput': number(r'^Requests per second: +([\d.]+)', text),
                'p99_ms': number(r'^ +99% +(\d+)', text)}


class NginxWrk(Nginx):
    """As the paper has it: as many requests as go in a given time. Times are those of 100,000."""
    requires = ('nginx', 'wrk')
    seconds = 3

    def load(self, place, small):
        text = client(['wrk', '-t', '1', '-c', str(self.connections), '-d',
                       '%ds' % (1 if small else self.seconds), '--latency', self.url()], place)
        if re.search('Socket errors|Non-2xx', text):
            raise Failed('wrk: ' + text)
        requests = number(r'(\d+) requests in', text)
        value, unit = re.search(r'99% +([\d.]+)(us|ms|s)', text).groups()
        return {'wall': self.seconds / requests * 100000, 'per': 100000 / requests,
                'throughput': number(r'^Requests/sec: +([\d.]+)', text),
                'p99_ms': float(value) * {'us': 0.001, 'ms': 1, 's': 1000}[unit]}


class NginxIdle(Nginx):
    """A small daemon that waits: what it has in memory, master and worker together."""
    requires = ('nginx',)

    def load(self, place, small):
        time.sleep(0.2)
        with open(os.path.join(place, 'nginx.pid')) as f:
            master = int(f.read())
        with open('/proc/%d/task/%d/children' % (master, master)) as f:
            pids = [master] + [int(p) for p in f.read().split()]
        resident = 0
        for pid in pids:
            with open('/proc/%d/status' % pid) as f:
                resident += number(r'^VmRSS:\s+(\d+)', f.read())
        return {'idle_rss': resident / len(pids)}


class Redis(Server):
    requires = ('redis-server', 'redis-benchmark')

    def __init__(self):
        super().__init__('redis', 'programs')

    def start(self, place):
        return ['redis-server', '--port', '0', '--unixsocket', place + '/redis.sock',
                '--dir', place, '--save', '', '--appendonly', 'no']

    def ready(self, place):
        return connects(socket.AF_UNIX, place + '/redis.sock')

    def load(self, place, small):
        client(['redis-benchmark', '-s', place + '/redis.sock', '-q', '-r', '50000', '-d', '100',
                '-P', '8', '-c', '20', '-n', '10000' if small else '60000',
                '-t', 'set,get,incr,lpush,rpop,sadd,hset,zadd,lrange_100'], place)
        return {}


class Pgbench(Server):
    requires = ('pgbench',)
    stop_signal = signal.SIGINT

    def __init__(self):
        super().__init__('pgbench', 'programs')
        base = '/usr/lib/postgresql'
        versions = sorted(os.listdir(base), key=float) if os.path.isdir(base) else []
        self.bin = '%s/%s/bin/' % (base, versions[-1]) if versions else ''
        self.user = '65534:65534' if os.getuid() == 0 else None

    def missing(self):
        return super().missing() + ([] if self.bin else ['postgres'])

    def as_user(self, argv):
        # It refuses to be root.
        if not self.user:
            return argv
        return ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups'] + argv

    def prepare(self, place):
        if self.user:
            os.chown(place, 65534, 65534)
        subprocess.run(self.as_user([self.bin + 'initdb', '-D', place + '/new', '-U', 'postgres',
                                     '-A', 'trust', '--no-sync', '--locale=C',
                                     '--encoding=UTF8']),
                       cwd=place, check=True, stdout=subprocess.DEVNULL)
        subprocess.run(['cp', '-a', place + '/new', place + '/data'], check=True)
        process = subprocess.Popen(self.as_user(self.start(place)), cwd=place,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.wait_until_ready(place, process)
        client(['pgbench', '-h', place, '-U', 'postgres', '-i', '-q', '-s', '2', 'postgres'], place)
        process.send_signal(signal.SIGINT)
        process.wait()
        subprocess.run('rm -rf new && mv data new', shell=True, cwd=place, check=True)

    def before(self, place):
        subprocess.run('rm -rf data && cp -a new data', shell=True, cwd=place, check=True)

    def start(self, place):
        return [self.bin + 'postgres', '-D', place + '/data', '-k', place,
                '-c', 'listen_addresses=', '-c', 'fsync=off', '-c', 'shared_buffers=32MB',
                '-c', 'autovacuum=off']

    def ready(self, place):
        if not os.path.exists(place + '/.s.PGSQL.5432'):
            return False
        return not subprocess.run([self.bin + 'pg_isready', '-q', '-h', place]).returncode

    def load(self, place, small):
        text = client(['pgbench', '-h', place, '-U', 'postgres', '-n', '-c', '4', '-j', '1',
                       '-t', '100' if small else '1500', '-b', 'tpcb-like@1', '-b', 'select-only@3',
                       '--random-seed=20', 'postgres'], place)
        return {'throughput': number(r'^tps = ([\d.]+)', text)}


class Git(Command):
    """A repository of a few hundred commits, packed anew, read and searched."""
    requires = ('git',)
    script = '''
        git repack -q -a -d -f --threads=1 --window=20
        git log --stat -n 150 > /dev/null
        git fsck --no-progress --strict > /dev/null
        git blame HEAD -- dir3/file7.txt > /dev/null
        git grep -c -E 'w[0-9]*5 ' HEAD > /dev/null
        git archive HEAD > /dev/null
    '''

    def __init__(self):
        super().__init__('git', 'programs', ['sh', '-e', '-c', self.script], tree=True)

    def run(self, place, prefix, small=False):
        return super().run(os.path.join(place, 'repository'), prefix, small)

    def prepare(self, place):
        draw = random.Random(11)
        place = os.path.join(place, 'repository')
        subprocess.run(['git', 'init', '-q', place], check=True)
        lines = []
        for commit in range(300):
            lines.append('commit refs/heads/main\ncommitter a <a@b.invalid> %d +0000\n'
                         'data 7\nchange\n\n' % (1700000000 + commit * 60))
            for _ in range(12):
                body = '\n'.join(' '.join('w%d' % draw.randrange(5000) for _ in range(9))
                                 for _ in range(draw.randrange(20, 90))) + '\n'
                lines.append('M 644 inline dir%d/file%d.txt\ndata %d\n%s\n'
                             % (draw.randrange(9), draw.randrange(90), len(body), body))
            lines.append('M 644 inline dir3/file7.txt\ndata <<END\n%s\nEND\n\n'
                         % '\n'.join('line %d' % (n * (commit % 7)) for n in range(150)))
        subprocess.run(['git', '-C', place, 'fast-import', '--quiet'], input=''.join(lines),
                       text=True, check=True)
        subprocess.run(['git', '-C', place, 'symbolic-ref', 'HEAD', 'refs/heads/main'], check=True)


class Gcc(Command):
    """C and C++, optimised: the driver, the compilers and the assembler."""
    requires = ('gcc', 'g++')

    def __init__(self):
        script = ('gcc -O2 -D_GNU_SOURCE -c -o one.o %s/micro.c; '
                  'g++ -O1 -c -o two.o %s/factor.cc' % (HERE, HERE))
        super().__init__('gcc', 'programs', ['sh', '-e', '-c', script], tree=True)


def program(name):
    return os.path.join(HERE, 'programs', name)


def all_works(tools):
    """Every work there is, in the order it is run. @tools is where our own programs are."""
    micro, python = tools + '/micro', '/usr/bin/python3'

    def loop(name, kind, times, *parameters, group='micro', threads=1):
        def argv(n):
            return [micro, kind, str(threads), str(n), *map(str, parameters)]
        work = Command(name, group, argv(times), argv(times // 50))
        if threads == 1:
            # Twice as many, for the difference: what an operation costs without the start.
            work.twice, work.instructions = argv(2 * (times // 50)), times // 50
        return work

    def sqlite(name='sqlite', group='programs', **attributes):
        return Command(name, group, ['sqlite3', ':memory:'], stdin=program('sqlite3.sql'),
                       requires=('sqlite3',), **attributes)

    def strings(name='strings', group='heavy', **attributes):
        return Command(name, group, [tools + '/strings', '80000'], [tools + '/strings', '4000'],
                       **attributes)

    def sweep(work, variants):
        work.variants, work.instructions, work.rounds = variants, 0, 3
        return work

    def article(requests, connections, path, full=True):
        size = {'/': '21', '/9': '9', '/23': '23', '/1k': '1k'}[path]
        return Nginx('ab-%dk-%d-%s' % (requests / 1000, connections, size), 'article', full=full, rounds=3,
                     requests=requests, connections=connections, path=path)

    works = [
        Nginx(), Redis(), Pgbench(), sqlite(),
        Command('python', 'programs', [python, program('python.py'), '80'], requires=(python,)),
        Command('perl', 'programs', ['perl', program('perl.pl'), '40'], requires=('perl',)),
        Gcc(), Git(),

        Command('factor', 'heavy', [tools + '/factor', '10000000002200000000057'],
                [tools + '/factor', '1000000016000000063']),
        Command('trees', 'heavy', [tools + '/trees', '16'], [tools + '/trees', '12']),
        strings(),

        NginxWrk('nginx-wrk', 'servers'),
        NginxIdle('nginx-idle', 'servers'),

        loop('pair-64', 'pair', 30000000, 64),
        loop('pair-16', 'pair', 30000000, 16),
        loop('pair-1024', 'pair', 30000000, 1024),
        loop('pair-16384', 'pair', 3000000, 16384),
        loop('pair-64-2t', 'pair', 15000000, 64, threads=2),
        loop('pair-64-4t', 'pair', 7500000, 64, threads=4),
        loop('random', 'random', 10000000, 4096),
        loop('random-2t', 'random', 5000000, 4096, threads=2),
        loop('random-4t', 'random', 2500000, 4096, threads=4),
        loop('larson-1t', 'larson', 10000000),
        loop('larson-2t', 'larson', 5000000, threads=2),
        loop('larson-4t', 'larson', 2500000, threads=4),
        loop('queue-2t', 'queue', 1000000),
        loop('queue-8t', 'queue', 250000, threads=4),
        loop('large', 'large', 2000),
        loop('realloc', 'realloc', 5000),
        loop('fragment', 'fragment', 300),
        Command('start', 'micro', [micro, 'spawn', str(STARTS), '/bin/true'],
                [micro, 'spawn', '10', '/bin/true']),
        Command('fork', 'micro', [micro, 'fork', '100'], [micro, 'fork', '5']),

        # The article measures one case, then varies each of three things.
        article(100000, 100, '/', full=False),
        *[article(requests, connections, path) for requests in (100000, 500000)
          for connections in (100, 500) for path in ('/9', '/23', '/1k')],
    ]
    for group, form, values in (
            ('granularity', 'mode=address:granularity=%s',
             ('4K', '16K', '64K', '256K', '1M', '2M', 'auto')),
            ('lives', 'mode=count:lives=%s', ('1', '2', '4', '8', '15'))):
        variants = {value: form % value for value in values}
        works += [sweep(work, variants) for work in (
            loop(group + '-fragment', 'fragment', 300, group=group),
            loop(group + '-random', 'random', 5000000, 4096, group=group),
            strings(group + '-strings', group),
            sqlite(group + '-sqlite', group))]
    return works
