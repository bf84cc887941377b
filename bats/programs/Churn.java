// SPDX-License-Identifier: MIT
// Work for a JVM: its collector, its own SIGSEGV handler, and the native memory it takes with malloc.
import java.nio.ByteBuffer;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.zip.Deflater;
import java.util.zip.Inflater;

public class Churn {
	static int depth;

	static MessageDigest digest() throws Exception {
		return MessageDigest.getInstance("SHA-256");
	}

	static String hex(MessageDigest digest) {
		return HexFormat.of().formatHex(digest.digest()).substring(0, 16);
	}

	// Garbage for the collector, from several threads at once.
	static long objects(int seed) {
		Map<Integer, String> alive = new HashMap<>();
		long sum = 0;
		for (int i = 0; i < 400_000; i++) {
			String old = alive.put((i * 7919 + seed) % 5000, "v".repeat(i % 60) + i);
			if (old != null)
				sum = sum * 31 + old.hashCode();
		}
		return sum;
	}

	// An access through null in compiled code and a stack that is too deep: both are SIGSEGV inside.
	static int length(String text) {
		return text.length();
	}

	static int nulls() {
		int caught = 0;
		for (int i = 0; i < 200_000; i++) {
			try {
				caught += length(i % 1000 == 999 ? null : "x") - 1;
			} catch (NullPointerException e) {
				caught++;
			}
		}
		return caught;
	}

	static void deep() {
		depth++;
		deep();
	}

	static int overflows() {
		int caught = 0;
		for (int i = 0; i < 5; i++) {
			try {
				depth = 0;
				deep();
			} catch (StackOverflowError e) {
				caught++;
			}
		}
		return depth > 100 ? caught : -1;
	}

	// Memory outside the Java heap: direct buffers and zlib's state.
	static String direct() throws Exception {
		List<ByteBuffer> buffers = new ArrayList<>();
		MessageDigest all = digest();
		for (int i = 0; i < 4000; i++) {
			ByteBuffer buffer = ByteBuffer.allocateDirect(1 + i * 37 % 20_000);
			while (buffer.hasRemaining())
				buffer.put((byte) i);
			buffers.add(buffer.flip());
			if (buffers.size() > 300)
				all.update(buffers.remove(0));
		}
		return hex(all);
	}

	static String compression() throws Exception {
		MessageDigest all = digest();
		byte[] data = new byte[20_000], packed = new byte[30_000], back = new byte[20_000];
		for (int i = 0; i < 300; i++) {
			for (int j = 0; j < data.length; j++)
				data[j] = (byte) (j * i >> 5);
			Deflater deflater = new Deflater(i % 10);
			deflater.setInput(data);
			deflater.finish();
			int size = deflater.deflate(packed);
			deflater.end();
			Inflater inflater = new Inflater();
			inflater.setInput(packed, 0, size);
			inflater.inflate(back);
			inflater.end();
			if (!Arrays.equals(data, back))
				throw new IllegalStateException("compressed data came back changed");
			all.update(packed, 0, size);
		}
		return hex(all);
	}

	static long threads() throws Exception {
		ExecutorService pool = Executors.newFixedThreadPool(4);
		List<Callable<Long>> jobs = new ArrayList<>();
		for (int i = 0; i < 8; i++) {
			int seed = i;
			jobs.add(() -> objects(seed));
		}
		long sum = 0;
		for (Future<Long> result : pool.invokeAll(jobs))
			sum += result.get();
		pool.shutdown();
		return sum;
	}

	static int shortThreads() throws Exception {
		int[] count = {0};
		for (int i = 0; i < 300; i++) {
			Thread thread = new Thread(() -> count[0]++);
			thread.start();
			thread.join();
		}
		return count[0];
	}

	public static void main(String[] arguments) throws Exception {
		System.out.println("objects " + objects(0));
		System.out.println("nulls " + nulls());
		System.out.println("overflows " + overflows());
		System.out.println("direct " + direct());
		System.gc();
		System.out.println("compression " + compression());
		System.out.println("threads " + threads());
		System.out.println("short threads " + shortThreads());
	}
}
